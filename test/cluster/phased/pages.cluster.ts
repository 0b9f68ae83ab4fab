/** The commands of docs/guides/phased-rollouts.md and docs/guides/gates.md do what the pages say, pasted as they are written. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { parse } from "yaml";
import { readPage } from "../../docs/pages.ts";
import { startPrometheus } from "../../prometheus/scripted.ts";
import { define } from "../stage/definitions.ts";
import { KUBECTL } from "../stage/kubectl.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { FAST, isUpdated, phasedScenario } from "./phased-stage.ts";

const commandsOf = (page: string): readonly string[] =>
  readPage(page)
    .replaceAll(/ \\\n +/g, " ")
    .split("\n")
    .flatMap((line) => (line.startsWith("    kubectl ") ? [line.trim()] : []));
const PHASED = commandsOf("docs/guides/phased-rollouts.md");
const GATES = commandsOf("docs/guides/gates.md");

/** The command of a page that has these words. */
function find(page: readonly string[], words: string): string {
  const found = page.filter((line) => line.includes(words));
  return found.length === 1 ? (found[0] ?? "") : assert.fail(`${found.length} commands have ${words}`);
}

/** Runs the command in a namespace, and resolves with what it prints; rejects if it fails. */
async function paste(command: string, namespace: string): Promise<string> {
  const script = `kubectl() { "${KUBECTL}" -n "${namespace}" "$@"; }; ${command.replaceAll("-n mimir", "")}`;
  return (await promisify(execFile)("/bin/sh", ["-ec", script])).stdout;
}

phasedScenario(
  "a PhasedRollout is made in the middle of a rolling update, paused, promoted, released and rescued",
  async (stage) => {
    const { namespace, prometheus } = stage;
    const run = (words: string): Promise<string> => paste(find(PHASED, words), namespace);
    const isStep = (status: string, partition: number) =>
      stage.until(
        `${status} at partition ${partition}`,
        (rollout) =>
          rollout.status?.rollingPodStatus?.status === status &&
          rollout.status.rollingPodStatus.partition === partition,
      );
    const untilRolled = (image: string): Promise<void> =>
      until(
        `all pods at ${image}`,
        async () => (await stage.images()).join() === [0, 1, 2].map((index) => `db-${index}@${image}`).join(),
      );
    prometheus.isFiring = true;
    await stage.createSet();
    await run("sts.plus/original-partition=0");
    await run(`patch statefulset db -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":3}}}}'`);
    await stage.roll("app:2");
    await stage.createRollout();
    const reconciler = stage.start(FAST);
    await isStep("WaitForChecks", 3);
    assert.deepEqual(await stage.images(), ["db-0@app:1", "db-1@app:1", "db-2@app:1"]);

    await run("sts.plus/pause=true");
    await isStep("Paused", 3);
    await run("sts.plus/pause-");
    await isStep("WaitForChecks", 3);
    await run("sts.plus/promote-step=");
    await isStep("WaitForChecks", 2);
    assert.deepEqual(await stage.images(), ["db-0@app:1", "db-1@app:1", "db-2@app:2"]);
    await run("skipCheck");
    await untilRolled("app:2");
    await stage.until("suspended", ({ status }) => status?.phase === "Suspended");
    await paste(`kubectl patch phasedrollout db --type=merge -p '{"spec":{"skipCheck":false}}'`, namespace);
    // The command of the page waits for 30 s.
    await stage.until("updated again", ({ status }) => status?.phase === "Updated");
    await run("--for=jsonpath='{.status.phase}'=Updated");
    await stage.until("guarded", isUpdated);

    assert.equal(await reconciler.end(), 0);
    assert.match(await run("get statefulsets -A"), new RegExp(`^${namespace} db$`, "m"));
    await run("annotate statefulset db sts.plus/phasedRollout-");
    await run(`patch statefulset db -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'`);
    await paste("kubectl delete phasedrollout db --wait=false", namespace);
    await run(`'{"metadata":{"finalizers":null}}'`);
    await until(
      "the PhasedRollout is gone",
      async () => (await paste("kubectl get phasedrollouts -o name", namespace)) === "",
    );
    await stage.roll("app:3");
    await untilRolled("app:3");
  },
);

phasedScenario(
  "kubectl wait ends with the template that was applied before it, and not while no reconciler runs",
  async (stage) => {
    const { namespace } = stage;
    const areAt = async (image: string): Promise<void> =>
      assert.deepEqual(
        await stage.images(),
        [0, 1, 2].map((index) => `db-${index}@${image}`),
      );
    /** What the page tells a pipeline to do after its apply. */
    const waitUpdated = async (build: string, time = "4m"): Promise<void> => {
      await paste(find(PHASED, '"checkpoint":"BUILD"').replace("BUILD", build), namespace);
      await paste(find(PHASED, "--for=condition=Updated").replace("1h", time), namespace);
    };
    await stage.createSet();
    await stage.createRollout();
    const reconciler = stage.start(FAST);
    await stage.until("adopted", isUpdated);
    for (const image of ["app:2", "app:3"]) {
      await stage.roll(image);
      await waitUpdated(image);
      await areAt(image);
    }
    assert.equal(await reconciler.end(), 0);
    await stage.roll("app:4");
    await assert.rejects(waitUpdated("app:4", "2s"), /timed out/);
    stage.start(FAST);
    await waitUpdated("app:4 again");
    await areAt("app:4");
  },
);

interface Gate {
  readonly metadata: object;
  readonly spec: { readonly checks: readonly { readonly query: object }[] };
}

scenario("a gate as in the page is read, asked again, and switched to Observe", async (stage) => {
  const { namespace, admin, call } = stage;
  await define(admin, "rolloutgates");
  await using prometheus = await startPrometheus();
  const run = (words: string): Promise<string> => paste(find(GATES, words), namespace);
  const [, example = ""] = /```yaml\n(.*?)```/s.exec(readPage("docs/guides/gates.md")) ?? [];
  const gate = parse(example) as Gate;
  const quick = { initialDelaySeconds: 0, periodSeconds: 1, successThreshold: 1, failureThreshold: 1 };
  const checks = gate.spec.checks.map((check) => ({
    ...check,
    query: { ...check.query, url: prometheus.url },
    ...quick,
  }));
  await call("POST", `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgates`, {
    ...gate,
    metadata: { ...gate.metadata, namespace },
    spec: { ...gate.spec, mode: "Enforce", when: ["BeforeFirstZone", "BetweenZones"], checks },
  });
  const zones = ["ingester-zone-a", "ingester-zone-b"].map((name) => ({ group: "ingester", name }));
  const isShown = (words: RegExp): Promise<void> =>
    until(`kubectl get gates shows ${words.source}`, async () => words.test(await run("get gates")));
  await stage.create(zones);
  stage.start(FAST);
  await isShown(/error-rate +ingester +Enforce +True +Settled/);
  prometheus.answer = () => 1;
  await stage.setImage("app:2", zones);
  await isShown(/GateFailed/);
  assert.match(await run("-o yaml"), /state: Failed/);
  await until("the Event is shown", async () => (await run("describe gate")).includes("Warning  GateFailed"));

  /** Within a second the value is the same. */
  const askAgain = (): Promise<void> => {
    const before = prometheus.seen.length;
    return until("it is asked again", async () => {
      await run("zonewise.dev/retry-gate");
      return prometheus.seen.length > before;
    });
  };
  for (const time of ["first", "second"]) {
    await askAgain();
    await until(`it has failed again for the ${time} time`, async () =>
      (await run("get gates")).includes("GateFailed"),
    );
  }
  prometheus.answer = () => 0;
  await askAgain();
  await stage.done("app:2", zones);
  prometheus.answer = () => 1;
  await stage.setImage("app:3", zones.slice(1));
  await isShown(/GateFailed/);
  const inOneHour = new Date(Date.now() + 3_600_000).toISOString();
  // What `zonewise bypass` writes.
  const bypass = `zonewise.dev/bypass-gates-until=${inOneHour} zonewise.dev/bypass-gates-reason=known`;
  await paste(`kubectl annotate statefulset ingester-zone-b ${bypass}`, namespace);
  await stage.done("app:3", zones.slice(1));
  await stage.setImage("app:4", zones.slice(0, 1));
  await isShown(/GateFailed/);
  await run(`'{"spec":{"mode":"Observe"}}'`);
  await stage.done("app:4", zones.slice(0, 1));
});

test("every command of the pages is played here, or by another test", () => {
  const played = [
    "sts.plus/",
    "skipCheck",
    "checkpoint",
    "condition=Updated",
    "partition",
    "get statefulsets -A",
    "finalizers",
    "jsonpath",
    "get gates",
    "get gate ",
    "describe gate",
    "Observe",
  ];
  assert.deepEqual(
    [...PHASED, ...GATES]
      .filter((command) => !played.some((words) => command.includes(words)))
      .map((command) => command.replace(/ +# .*$/, "")),
    [
      "kubectl apply -f statefulset.yaml",
      // install/rights.cluster.ts
      "kubectl apply -k infra/manifests/prometheus-secrets -n NAMESPACE",
    ],
  );
});
