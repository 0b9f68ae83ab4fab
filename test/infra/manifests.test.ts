/**
 * The manifests: all parse, everything that they name exists, their roles name what they allow
 * (test/cluster/install/rights.cluster.ts asks a real API server), and dashboards and alerts of the original find what they
 * select by: the container, the Service's port, and the label `job`.
 */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { VARIABLES } from "../../infra/config/variables.ts";
import { collect, find, type Manifest, read, rightsOf, ROOT, rulesOf } from "./manifests.ts";

interface Container {
  readonly name?: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string }[];
  readonly securityContext?: object;
}

const files = globSync("{infra/manifests,knative,examples}/**/*.yaml", { cwd: ROOT }).toSorted();

const containersOf = (manifest: Manifest): Container[] =>
  collect(manifest, (object) => object["containers"] as Container[] | undefined).flat();

/** What the image holds: the entries that are built. */
const build = readFileSync(join(ROOT, "infra/build.ts"), "utf8");
/** Of functions-framework, not ours. */
const FRAMEWORK = new Set(["FUNCTION_TARGET", "FUNCTION_SOURCE", "FUNCTION_SIGNATURE_TYPE"]);

describe("every manifest", () => {
  for (const file of files) {
    it(`${file} parses, and names only what exists`, () => {
      for (const manifest of read(file)) {
        const { resources = [], components = [] } = manifest as unknown as {
          resources?: unknown;
          components?: unknown;
        };
        if (file.endsWith("kustomization.yaml")) {
          const manifests = globSync("*.yaml", { cwd: join(ROOT, dirname(file)) }).filter(
            (name) => name !== "kustomization.yaml",
          );
          assert.deepEqual(
            manifests.filter((name) => ![resources].flat().includes(name)),
            [],
            "files that nobody applies",
          );
          for (const named of [resources, components].flat() as string[])
            assert.ok(existsSync(join(ROOT, dirname(file), named)), `${file}: ${named}`);
        }
        if (file.startsWith("examples/")) continue;
        for (const pod of collect(manifest, (object) => ("containers" in object ? object : undefined)))
          assert.equal(pod["enableServiceLinks"], false, "a Service's address would pass for one of our variables");
        for (const field of collect(manifest, (object) => object["fieldRef"] as { apiVersion?: string } | undefined))
          assert.equal(
            field.apiVersion,
            "v1",
            "without the default, Helm 4 and Flux could not take over what kubectl applied",
          );
        for (const { args = [], env = [], securityContext } of containersOf(manifest)) {
          const unknown = env.map(({ name }) => name).filter((name) => !(name in VARIABLES) && !FRAMEWORK.has(name));
          assert.deepEqual(unknown, [], "variables that nobody reads");
          const entry = args.find((arg) => !arg.startsWith("--")) ?? "";
          const [, built] = /^dist\/(.*)\.js$/.exec(entry) ?? [];
          assert.ok(built === undefined ? existsSync(join(ROOT, entry)) : build.includes(`"${built}": "`), entry);
          assert.partialDeepStrictEqual(securityContext, {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          });
        }
      }
    });
  }
});

describe("every CronJob", () => {
  const jobs = files.flatMap((file) => read(file)).filter(({ kind }) => kind === "CronJob");
  it("is one of three", () => assert.equal(jobs.length, 3));
  for (const { metadata, spec } of jobs)
    it(`${metadata?.name} leaves at most four finished Jobs in lists, for an hour`, () =>
      assert.partialDeepStrictEqual(spec, {
        successfulJobsHistoryLimit: 1,
        failedJobsHistoryLimit: 3,
        jobTemplate: { spec: { ttlSecondsAfterFinished: 3600 } },
      }));
});

it("replacements name kinds in full: kubectl takes patterns there from 1.36 on alone, and otherwise replaces nothing", () => {
  const selects = files
    .filter((file) => file.endsWith("kustomization.yaml"))
    .flatMap((file) => read(file).flatMap(({ replacements }) => collect(replacements, ({ select }) => select)));
  assert.ok(selects.length > 10);
  for (const { kind = "", name = "" } of selects as { kind?: string; name?: string }[])
    assert.match(kind + name, /^[\w.-]*$/);
});

const ROLES = globSync("infra/manifests/**/*.yaml", { cwd: ROOT })
  .flatMap(read)
  .filter(({ kind }) => kind === "Role" || kind === "ClusterRole");

it("every role names each verb and each resource, and reaches Secrets and ConfigMaps by their names only; to create one has no name yet", () => {
  assert.ok(ROLES.length > 10, `${ROLES.length} roles`);
  for (const role of ROLES) {
    assert.doesNotMatch(JSON.stringify(rulesOf(role)), /\*/);
    const unnamed = rulesOf(role).filter(({ resourceNames }) => resourceNames === undefined);
    const broad = unnamed.flatMap(rightsOf).filter((right) => /^(?!create ).*(?:secrets|configmaps)/.test(right));
    assert.deepEqual(broad, [], role.metadata?.name);
  }
});

it("an installation for all namespaces may do there what one for a single namespace may do in its own, and nothing else", () =>
  assert.deepEqual(
    rulesOf(find("all-namespaces/cluster-rbac.yaml", "ClusterRole", "zonewise-reconciler")),
    rulesOf(find("reconciler/rbac.yaml", "Role", "zonewise-reconciler")),
  ));

it("the role of operators has more than that of viewers, which has nothing that changes something", () => {
  const of = (name: string): string[] => rulesOf(find("cli/rbac.yaml", "ClusterRole", name)).flatMap(rightsOf);
  const viewer = of("zonewise-viewer");
  assert.deepEqual(
    viewer.filter((right) => !/^(?:get|list) /.test(right)),
    [],
  );
  const more = ["create pods/eviction", "patch phasedrollouts", "patch rolloutgates", "patch statefulsets"];
  assert.deepEqual([...viewer, ...more].toSorted(), of("zonewise-operator").toSorted());
});

const NAME = "app.kubernetes.io/name";
const portsOf = (manifest: Manifest): string[] =>
  collect(manifest, (object) => object["ports"] as { name: string }[] | undefined).flatMap((ports) =>
    ports.map(({ name }) => name),
  );

describe("the names that dashboards and alerts of the original select", () => {
  for (const [file, kind, name] of [
    ["functions/deployment.yaml", "Deployment", "zonewise-functions"],
    ["reconciler/cronjob.yaml", "CronJob", "zonewise-reconciler"],
  ] as const)
    it(`the container of ${name} is called rollout-operator`, () =>
      assert.deepEqual(
        containersOf(find(file, kind, name)).map((one) => one.name),
        ["rollout-operator"],
      ));

  it("the Service has the port http-metrics, of pods that have it", () => {
    assert.ok(portsOf(find("functions/service.yaml", "Service", "rollout-operator")).includes("http-metrics"));
    assert.ok(portsOf(find("functions/deployment.yaml", "Deployment", "zonewise-functions")).includes("http-metrics"));
  });

  for (const [file, kind, field] of [
    ["service-monitor/monitor.yaml", "ServiceMonitor", "endpoints"],
    ["pod-monitor/monitor.yaml", "PodMonitor", "podMetricsEndpoints"],
  ] as const)
    it(`the ${kind} scrapes the functions once, as job NAMESPACE/rollout-operator, and leaves a group's labels alone`, () => {
      const monitor = find(file, kind, "zonewise-functions") as unknown as {
        spec: { selector: object } & Record<string, unknown>;
      };
      assert.deepEqual(monitor.spec.selector, { matchLabels: { [NAME]: "zonewise-functions" } });
      const job = { action: "replace", sourceLabels: ["__meta_kubernetes_namespace"], targetLabel: "job" };
      const relabelings = [{ ...job, replacement: "$1/rollout-operator" }];
      assert.deepEqual(monitor.spec[field], [{ port: "http-metrics", honorLabels: true, relabelings }]);
    });

  it("the original's alert finds no webhook that fails open but one, which docs/reference/metrics.md names", () => {
    const ORIGINALS = /^(?:pod-eviction|zpdb-validation).+$/;
    const open = globSync("infra/manifests/webhooks/*.yaml", { cwd: ROOT })
      .flatMap((file) => read(file))
      .flatMap((manifest) => (manifest["webhooks"] ?? []) as { name: string; failurePolicy: string }[])
      .filter(({ name, failurePolicy }) => failurePolicy === "Ignore" && ORIGINALS.test(name));
    assert.deepEqual(
      open.map(({ name }) => name),
      ["zpdb-validation-zonewise.grafana.com"],
    );
  });
});
