/**
 * What docs/migrate/rollout-operator.md tells to do before and while the original is removed, as its users have installed it:
 * definitions and budgets stay, and what Zonewise serves by.
 */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { HELM } from "../install/helm.ts";
import { define } from "../stage/definitions.ts";
import { pathOfManifest } from "../stage/manifests.ts";
import { openStage } from "../stage/stage.ts";
import { installOriginal } from "./install-original.ts";
import { buildOriginal, CHART, MANIFESTS, namesOf, printManifests, SECRET, type Shape } from "./original.ts";
import { copyManifests, readCommands, runCommands } from "./steps.ts";

const PORT = 9;

/** Zonewise serves by them, or they are of the cluster. */
const KEPT = /^(?:Service|CustomResourceDefinition|.*WebhookConfiguration)$/;

for (const [name, shape, missing] of [
  ["manifests", MANIFESTS, false],
  ["release", CHART, HELM.missing],
] as const)
  it(
    `the page's commands remove the original's ${name}, and leave definitions, budgets, Service and Secret`,
    { skip: missing },
    async (t) => {
      const stage = await openStage();
      const { call, namespace, folder } = stage;
      const run = (commands: readonly string[]): Promise<string> =>
        runCommands(commands, folder, namesOf(shape, namespace));
      t.after(async () => {
        await run([
          "kubectl delete validatingwebhookconfiguration,mutatingwebhookconfiguration -l grafana.com/namespace=NAMESPACE",
        ]);
        await stage.close();
      });
      await copyManifests(folder, { namespace, port: PORT, patches: "" });
      await define(stage.admin, "zoneawarepoddisruptionbudgets", "replicatemplates");
      await installOriginal(stage, shape, { port: PORT, run });
      await run(["kubectl delete validatingwebhookconfiguration zpdb-validation-NAMESPACE"]); // nobody serves it here
      const budgets = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`;
      await call("POST", budgets, {
        apiVersion: "rollout-operator.grafana.com/v1",
        kind: "ZoneAwarePodDisruptionBudget",
        metadata: { name: "budget" },
        spec: { maxUnavailable: 1, selector: { matchLabels: { a: "b" } } },
      });
      await run(await commandsFor(shape));
      await call("GET", `${budgets}/budget`);
      await call("GET", `/api/v1/namespaces/${namespace}/secrets/${SECRET}`);
      for (const one of buildOriginal(shape, { namespace, port: PORT })) {
        if (one.metadata.name.startsWith("zpdb-validation")) continue;
        const answer = call("GET", `${pathOfManifest(one)}/${one.metadata.name}`);
        if (KEPT.test(one.kind)) await answer;
        else await assert.rejects(answer, { cause: 404 }, `${one.kind} ${one.metadata.name}`);
      }
      const definition = await call<{ metadata: { annotations: Readonly<Record<string, string>> } }>(
        "GET",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/zoneawarepoddisruptionbudgets.rollout-operator.grafana.com",
      );
      assert.equal(definition.metadata.annotations["helm.sh/resource-policy"], "keep");
      if (shape.release !== undefined)
        assert.doesNotMatch(
          (await HELM.run(["list", "-n", namespace])).text,
          new RegExp(shape.release),
          "Helm forgot it",
        );
    },
  );

it(
  "an upgrade of mimir-distributed without the original keeps what Zonewise serves by, as the page says",
  { skip: HELM.missing },
  async (t) => {
    const stage = await openStage();
    const { call, namespace, folder } = stage;
    const names = namesOf(CHART, namespace);
    const run = (commands: readonly string[]): Promise<string> => runCommands(commands, folder, names);
    t.after(async () => {
      await run([
        "kubectl delete validatingwebhookconfiguration,mutatingwebhookconfiguration -l grafana.com/namespace=NAMESPACE",
        "kubectl delete clusterrole,clusterrolebinding -l migration-test=NAMESPACE",
      ]);
      await stage.close();
    });
    const original = buildOriginal(CHART, { namespace, port: PORT });
    const chart = await writeMimir(folder, printManifests(original));
    const upgrade = async (...args: readonly string[]): Promise<void> => {
      const { code, text } = await HELM.run(["upgrade", "--install", names.RELEASE, chart, "-n", namespace, ...args]);
      assert.equal(code, 0, text);
    };
    await upgrade();
    const [keep = ""] = await readCommands("Helm", "get manifest");
    await run([keep.replace(/^helm /, `${HELM.path} `)]);
    const kept = await readFile(join(folder, "original.yaml"), "utf8");
    assert.equal(kept.match(/^kind: /gm)?.length, original.length);
    assert.doesNotMatch(kept, /mimir-config/);
    const keeping = await readCommands("Helm", "annotate", 4);
    assert.equal(keeping.length, 2);
    await run([...keeping, "kubectl delete validatingwebhookconfiguration pod-eviction-NAMESPACE"]);
    await upgrade("--set", "rollout_operator.enabled=false");
    for (const one of original.filter(({ metadata }) => !metadata.name.startsWith("pod-eviction"))) {
      const answer = call("GET", `${pathOfManifest(one)}/${one.metadata.name}`);
      if (KEPT.test(one.kind)) await answer;
      else await assert.rejects(answer, { cause: 404 }, `${one.kind} ${one.metadata.name}`);
    }
  },
);

/** A chart that has the original's as mimir-distributed has it: under another name, and to be switched off. */
async function writeMimir(folder: string, templates: string): Promise<string> {
  const chart = join(folder, "mimir");
  const part = join(chart, "charts/rollout-operator");
  for (const path of [chart, part]) await mkdir(join(path, "templates"), { recursive: true });
  const dependency =
    "{name: rollout-operator, alias: rollout_operator, version: 0.53.0, condition: rollout_operator.enabled}";
  await writeFile(
    join(chart, "Chart.yaml"),
    `apiVersion: v2\nname: mimir-distributed\nversion: 6.0.0\ndependencies: [${dependency}]\n`,
  );
  await writeFile(join(chart, "values.yaml"), "rollout_operator: {enabled: true}\n");
  await writeFile(
    join(chart, "templates/config.yaml"),
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mimir-config}\n",
  );
  await writeFile(join(part, "Chart.yaml"), "apiVersion: v2\nname: rollout-operator\nversion: 0.53.0\n");
  await writeFile(join(part, "templates/all.yaml"), templates);
  return chart;
}

/** The commands of the section, in order, without those for the other way of installing it. */
async function commandsFor({ release }: Shape): Promise<string[]> {
  const all = await readCommands("What to delete, and what not");
  const ofChart = all.findIndex((command) => command.includes("owner=helm"));
  const ofManifests = all.findIndex((command) => command.includes("deployment/rollout-operator "));
  assert.ok(ofManifests > 0 && ofChart > ofManifests);
  return release === undefined ? all.slice(0, ofChart) : [...all.slice(0, ofManifests), ...all.slice(ofChart)];
}
