/** `zonewise dump`: one file of a group, its decisions in it, and none of the secrets that are planted wherever they fit. */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { it } from "node:test";
import { gunzipSync } from "node:zlib";
import { BUDGETS } from "../../simulation/names.ts";
import { createRecorder } from "../../../reconciler/report/act/recorder.ts";
import type { Draft } from "../../emulator/objects.ts";
import { gateObject } from "../../reconciler/gates/builders.ts";
import { budgetObject } from "../../reconciler/budget/builders.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { read } from "../../infra/manifests.ts";
import { openTerminal } from "../stage.ts";
import { setOf, setRollout, SETS } from "./half-rolled.ts";

export interface DumpFile {
  readonly kind: string;
  readonly version: number;
  readonly group: string;
  readonly objects: readonly { readonly kind: string; readonly metadata: { readonly name: string } }[];
  readonly decisions: {
    readonly plan: { readonly group?: string; readonly steps?: readonly object[]; readonly error?: string };
    readonly explain: Readonly<Record<string, readonly object[]>>;
    readonly history: { readonly zones?: readonly object[] };
  };
  readonly unread: readonly string[];
}

/** Each is planted in a place of its own. */
const PLANTED = {
  env: "swordfish-in-env",
  argument: "hunter2-in-args",
  url: "pa55-in-url",
  parameter: "abc-in-query",
  annotation: "vault-in-annotation",
  applied: "word-in-last-applied",
  template: "word-in-template-annotation",
  probe: "word-in-probe-header",
  volume: "secret-volume-name",
  terminated: "word-in-termination-message",
  event: "swordfish-in-env", // the value of the variable, as an Event repeats it
  gate: "gate-url-password",
  bearer: "bearer-in-a-status",
  bundle: "word-in-ca-bundle",
  secret: "word-in-a-secret",
  map: "word-in-a-config-map",
  other: "group-of-somebody-else",
} as const;

async function plant(t: TestContext): Promise<Stage> {
  const stage = await setRollout(t);
  const { store } = stage.emulator;
  for (const name of ["zoneawarepoddisruptionbudgets", "rolloutgates", "phasedrollouts"])
    for (const definition of read(`infra/manifests/crds/${name}.yaml`))
      store.create("customresourcedefinitions.apiextensions.k8s.io", definition as Draft);
  const set = setOf(stage, "b");
  const template = set.spec?.template;
  const hostile = {
    env: [
      { name: "DB_PASSWORD", value: PLANTED.env },
      { name: "DATABASE", value: `postgres://app:${PLANTED.url}@db/x?sslkey=${PLANTED.parameter}` },
      { name: "FROM", valueFrom: { secretKeyRef: { name: PLANTED.volume, key: "k" } } },
    ],
    args: [`-auth.token=${PLANTED.argument}`],
    readinessProbe: { httpGet: { path: "/", port: 80, httpHeaders: [{ name: "X-Key", value: PLANTED.probe }] } },
  };
  store.update(SETS, {
    ...set,
    metadata: {
      ...set.metadata,
      annotations: {
        ...set.metadata?.annotations,
        "vault/token": PLANTED.annotation,
        "kubectl.kubernetes.io/last-applied-configuration": PLANTED.applied,
      },
    },
    spec: {
      ...set.spec,
      template: {
        ...template,
        metadata: { ...template?.metadata, annotations: { "inject/key": PLANTED.template } },
        spec: {
          ...template?.spec,
          containers: template?.spec?.containers.map((container) => ({ ...container, ...hostile })),
          volumes: [{ name: "v", secret: { secretName: PLANTED.volume } }],
        },
      },
    },
  } as unknown as Draft);
  await stage.time.advance(1000);
  const [pod] = store.list("pods");
  assert.ok(pod);
  const status = pod["status"] as { containerStatuses?: object[] };
  const lastState = { terminated: { exitCode: 1, reason: "Error", message: PLANTED.terminated } };
  store.update("pods", {
    ...pod,
    status: { ...status, containerStatuses: status.containerStatuses?.map((one) => ({ ...one, lastState })) },
  });
  const gate = gateObject({ check: { query: { expr: "errors > 0", url: `http://a:${PLANTED.gate}@prometheus` } } });
  const open = { type: "Open", status: "False", reason: "GateUnreachable", lastTransitionTime: "2026-01-01T00:00:00Z" };
  store.create("rolloutgates.zonewise.dev", {
    apiVersion: "zonewise.dev/v1",
    kind: "RolloutGate",
    metadata: { name: "errors", namespace: "default" },
    spec: { ...(gate.spec as object), caBundle: PLANTED.bundle },
    status: {
      observedGeneration: 1,
      conditions: [{ ...open, message: `sent Authorization: Bearer ${PLANTED.bearer}` }],
    },
  });
  const metadata = { namespace: "default" };
  store.create("secrets", {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { ...metadata, name: "s" },
    data: { k: PLANTED.secret },
  });
  store.create("configmaps", {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { ...metadata, name: "m" },
    data: { k: PLANTED.map },
  });
  const other = budgetObject({ selector: { matchLabels: { "rollout-group": PLANTED.other } } }, "other") as Draft;
  for (const object of [budgetObject() as Draft, other])
    store.create(BUDGETS, { ...object, metadata: { ...object.metadata, namespace: "default" } });
  const { emitEvents, flush } = createRecorder({
    cluster: stage.connect().cluster,
    clock: stage.clock,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    instance: "t",
  });
  const regarding = {
    kind: "StatefulSet",
    namespace: "default",
    name: "ingester-zone-b",
    uid: set.metadata?.uid ?? "",
  } as const;
  emitEvents([
    { regarding, type: "Warning", reason: "ZoneNotReady", message: `it says that ${PLANTED.event} is wrong` },
  ]);
  await flush();
  return stage;
}

it("dump has the group's objects and decisions, and no secret that was planted", async (t) => {
  const stage = await plant(t);
  const { run } = await openTerminal(t, stage);
  const { code, out } = await run("dump ingester --file -");
  assert.equal(code, 0);
  for (const [place, secret] of Object.entries(PLANTED)) assert.ok(!out.includes(secret), `${place}: ${secret}`);

  const { objects, decisions, unread, ...head } = JSON.parse(out) as DumpFile;
  assert.deepEqual([head.kind, head.version, head.group], ["ZonewiseDump", 1, "ingester"]);
  assert.deepEqual(unread, []);
  const counts = Map.groupBy(objects, ({ kind }) => kind);
  assert.equal(counts.get("StatefulSet")?.length, 3);
  assert.equal(counts.get("Pod")?.length, 9);
  assert.ok((counts.get("ControllerRevision")?.length ?? 0) >= 6);
  assert.deepEqual(
    counts.get("ZoneAwarePodDisruptionBudget")?.map(({ metadata }) => metadata.name),
    ["ingester"],
  );
  assert.deepEqual(
    counts.get("RolloutGate")?.map(({ metadata }) => metadata.name),
    ["errors"],
  );
  assert.equal(counts.get("Event")?.length, 1);
  assert.ok((decisions.plan.steps?.length ?? 0) > 0, JSON.stringify(decisions.plan));
  assert.deepEqual(Object.keys(decisions.explain).toSorted(), [
    "group/ingester",
    "statefulset/ingester-zone-a",
    "statefulset/ingester-zone-b",
    "statefulset/ingester-zone-c",
  ]);
  assert.equal(decisions.history.zones?.length, 3);
});

it("dump writes a file for its owner alone, and none over another", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "dump-"));
  t.after(() => rm(folder, { recursive: true }));
  const { run } = await openTerminal(t, await setRollout(t));
  const path = join(folder, "group.json.gz");
  const { code, out } = await run(`dump ingester --file ${path}`);
  assert.equal(code, 0);
  assert.match(out, /^.*group\.json\.gz: \d+ objects, \d+ texts redacted\n[^]*Read it before you send it/m);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal((JSON.parse(gunzipSync(await readFile(path)).toString()) as DumpFile).kind, "ZonewiseDump");

  const again = await run(`dump ingester --file ${path}`);
  assert.equal(again.code, 2);
  assert.match(again.err, /cannot be written.*EEXIST/);
});

it("dump says what it could not read, and writes the rest", async (t) => {
  const { run } = await openTerminal(t, await setRollout(t));
  const { code, out } = await run("dump ingester --file -");
  assert.equal(code, 0);
  const { unread, objects } = JSON.parse(out) as DumpFile;
  assert.ok(unread.includes("rolloutgates: the kind is not defined"), unread.join());
  assert.ok(objects.length > 10);
});

it("dump of no group is the error of every command", async (t) => {
  const { run } = await openTerminal(t, await setRollout(t));
  const { code, err } = await run("dump nobody --file -");
  assert.equal(code, 4);
  assert.match(err, /no rollout group "nobody"/);
});
