/**
 * Ticks over 200 PhasedRollouts and 20 gates on the embedded cluster: settled, with 16 checks due, and with 200
 * endpoints that do not answer.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { bundle } from "../../infra/build.ts";
import { withDefaults } from "../emulator/defaults.ts";
import type { Draft } from "../emulator/objects.ts";
import { type Emulator, startEmulator } from "../emulator/index.ts";
import { startPrometheus } from "../prometheus/scripted.ts";
import { createGroups } from "./groups.ts";
import { measure } from "./process.ts";
import type { Bench } from "./row.ts";
import type { TickFigures } from "./tick-process.ts";

const ROLLOUTS = 200;
const GATES = 20;
const DUE = 16;
/** The period of the checks, which is 1 s, and the second to which times are rounded. */
const PAUSE_MS = "2100";
const SETS = "statefulsets.apps";
/** Of a round of checks; the lists and writes come on top. */
const ROUND_MS = 10_000;
const BESIDE_MS = 2000;

export const benchChecks: Bench = async ({ root, scratch }) => {
  await bundle({ "tick-process": "test/bench/tick-process.ts" }, root, scratch);
  const emulator = await startEmulator();
  await using prometheus = await startPrometheus();
  const kubeconfig = join(scratch, "kubeconfig");
  const run = (settings: { CHECKS?: string; TICKS?: string; PAUSE_MS?: string } = {}): Promise<TickFigures> =>
    measure<TickFigures>(join(scratch, "tick-process.js"), [], { KUBECONFIG: kubeconfig, ...settings });
  try {
    await emulator.writeKubeconfig(kubeconfig);
    for (const name of ["phasedrollouts", "rolloutgates"])
      install(emulator, join(root, `infra/manifests/crds/${name}.yaml`));
    await createGroups(emulator, { groups: GATES, replicas: 1 });
    const bare = await run({ CHECKS: "on" });

    for (let i = 0; i < GATES; i++) createGate(emulator, `g${i}`, prometheus.url);
    await run({ CHECKS: "on", TICKS: "2" });
    const gates = await run({ CHECKS: "on" });

    for (let i = 0; i < ROLLOUTS; i++) createRollout(emulator, `db-${i}`, prometheus.url);
    await run({ CHECKS: "on", TICKS: "4", PAUSE_MS: "500" });
    const settled = await run({ CHECKS: "on" });

    // An alert fires: the checks are asked again each second, and fail.
    prometheus.answer = () => 1;
    for (let i = 0; i < DUE; i++) deploy(emulator, `db-${i}`);
    await run({ CHECKS: "on", TICKS: "2", PAUSE_MS: "1000" });
    const due = await run({ CHECKS: "on", TICKS: "6", PAUSE_MS });

    for (let i = DUE; i < ROLLOUTS; i++) deploy(emulator, `db-${i}`);
    await run({ CHECKS: "on", TICKS: "4", PAUSE_MS: "1000" });
    prometheus.answer = () => "hang";
    const dead = await run({ CHECKS: "on", TICKS: "4", PAUSE_MS });

    const longest = Math.max(dead.ms, dead.firstMs);
    return [
      {
        what: `tick, ${GATES} groups with a gate each, settled`,
        figure: `${show(gates)}; without gates ${show(bare)}`,
        aim: { text: "no more calls", met: gates.calls === bare.calls },
      },
      {
        what: `the same, and ${ROLLOUTS} PhasedRollouts, settled`,
        figure: show(settled),
        aim: { text: "2 lists for PhasedRollouts, 1 for gates", met: settled.calls === 4 },
      },
      { what: `the same, ${DUE} of their checks due and failing`, figure: show(due) },
      {
        what: `the same, ${ROLLOUTS} checks due at endpoints that do not answer`,
        figure: `${(longest / 1000).toFixed(1)} s (the longest)`,
        aim: {
          text: `${ROUND_MS / 1000} s for the checks, ${BESIDE_MS / 1000} s for lists and writes`,
          met: longest <= ROUND_MS + BESIDE_MS,
        },
      },
    ];
  } finally {
    await emulator.stop();
  }
};

function show({ calls, ms, firstMs }: TickFigures): string {
  return `${calls} ${calls === 1 ? "call" : "calls"}, ${ms.toFixed(0)} ms (first ${firstMs.toFixed(0)} ms)`;
}

function install({ store }: Emulator, path: string): void {
  store.create("customresourcedefinitions.apiextensions.k8s.io", parse(readFileSync(path, "utf8")) as Draft);
}

function createGate({ store }: Emulator, group: string, url: string): void {
  const check = { name: "errors", query: { expr: "errors > 0", url }, successWhen: "NoData" };
  store.create("rolloutgates.zonewise.dev", {
    apiVersion: "zonewise.dev/v1",
    kind: "RolloutGate",
    metadata: { name: group, namespace: "default" },
    spec: { group, when: ["BetweenZones"], onError: "Wait", mode: "Enforce", checks: [check] },
  });
}

function createRollout({ store }: Emulator, name: string, url: string): void {
  const labels = { name };
  const set = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, namespace: "default" },
    spec: {
      serviceName: name,
      replicas: 1,
      updateStrategy: { type: "RollingUpdate" },
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { "sim/ready-after-ms": "0" } },
        spec: { containers: [{ name: "c", image: "x:1" }] },
      },
    },
  };
  store.create(SETS, withDefaults(SETS, set));
  const query = { expr: "errors > 0", url, successWhen: "NoData" };
  store.create("phasedrollouts.sts.plus", {
    apiVersion: "sts.plus/v1alpha1",
    kind: "PhasedRollout",
    metadata: { name, namespace: "default" },
    spec: { targetRef: name, check: { initialDelaySeconds: 0, periodSeconds: 1, successThreshold: 3, query } },
  });
}

/** Changes the template of a StatefulSet. */
function deploy({ store }: Emulator, name: string): void {
  const set = store.get(SETS, "default", name);
  if (!set) throw new Error(`there is no ${name}`);
  const spec = set["spec"] as { readonly template: object };
  const template = { ...spec.template, spec: { containers: [{ name: "c", image: "x:2" }] } };
  store.update(SETS, withDefaults(SETS, { ...set, spec: { ...spec, template } }));
}
