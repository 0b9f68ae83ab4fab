/** What dashboards and alerts of the original select by: the container, the Service's port, and the label `job`. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { describe, it } from "node:test";
import { collect, find, type Manifest, read, ROOT } from "./manifests.ts";

const NAME = "app.kubernetes.io/name";
const containersIn = (manifest: Manifest): string[] =>
  collect(manifest, (object) =>
    (object["containers"] as { name: string }[] | undefined)?.map(({ name }) => name),
  ).flat();
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
      assert.deepEqual(containersIn(find(file, kind, name)), ["rollout-operator"]));

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
