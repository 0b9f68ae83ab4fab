/** What our writes rely on; programs of random calls ask a real API server the same (test/cluster/conformance/programs). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CONFIG_MAPS, configMap, MERGE, startFixture } from "./fixture.ts";
import { dig, listOf } from "./objects.ts";
import { add, pod } from "../builders/objects.ts";

const ONE = `${CONFIG_MAPS}/a`;
const OTHER_UID = "11111111-2222-3333-4444-555555555555";

/** Calls, each of an object that has changed once, with their codes. */
const CALLS: readonly (readonly [
  what: string,
  call: (first: { uid: unknown; version: unknown }) => readonly [string, string, object, string?],
  code: number,
])[] = [
  ["a deletion of another UID", () => ["DELETE", ONE, { preconditions: { uid: OTHER_UID } }], 409],
  [
    "a deletion of an old version",
    ({ version }) => ["DELETE", ONE, { preconditions: { resourceVersion: version } }],
    409,
  ],
  ["a deletion of this UID", ({ uid }) => ["DELETE", ONE, { preconditions: { uid } }], 200],
  [
    "a replacement of an old version",
    ({ version }) => ["PUT", ONE, { ...configMap("a"), metadata: { name: "a", resourceVersion: version } }],
    409,
  ],
  [
    "a replacement of another UID",
    () => ["PUT", ONE, { ...configMap("a"), metadata: { name: "a", uid: OTHER_UID } }],
    409,
  ],
  ["a replacement of any version", () => ["PUT", ONE, configMap("a")], 200],
  [
    "a patch of an old version",
    ({ version }) => ["PATCH", ONE, { metadata: { resourceVersion: version }, data: { k: "3" } }, MERGE],
    409,
  ],
  ["a patch of another UID", () => ["PATCH", ONE, { metadata: { uid: OTHER_UID } }, MERGE], 422],
];

for (const [what, callOf, code] of CALLS)
  test(`${what}: ${code}`, async (t) => {
    const { call } = await startFixture(t);
    const { body } = await call("POST", CONFIG_MAPS, configMap("a", { k: "1" }));
    const changed = await call("PATCH", ONE, { data: { k: "2" } }, MERGE);
    const first = { uid: dig(body, "metadata", "uid"), version: dig(body, "metadata", "resourceVersion") };
    assert.equal((await call(...callOf(first))).status, code);
    if (code >= 400) assert.deepEqual((await call("GET", ONE)).body, changed.body);
  });

test("a write that changes nothing keeps the version, a dry run stores nothing, and names are generated", async (t) => {
  const { call } = await startFixture(t);
  const { body } = await call("POST", CONFIG_MAPS, configMap("a", { k: "1" }));
  assert.deepEqual((await call("PATCH", ONE, { data: { k: "1" } }, MERGE)).body, body);
  for (const [method, path, sent] of [
    ["PATCH", `${ONE}?dryRun=All`, { data: { k: "2" } }],
    ["DELETE", `${ONE}?dryRun=All`, {}],
  ] as const)
    assert.equal((await call(method, path, sent, method === "PATCH" ? MERGE : undefined)).status, 200);
  assert.deepEqual((await call("GET", ONE)).body, body);
  const generated = await call("POST", CONFIG_MAPS, { metadata: { generateName: "gen-" } });
  assert.match(String(dig(generated.body, "metadata", "name")), /^gen-[a-z0-9]{5}$/);
});

test("an eviction waits for its budget, and is an error under two", async (t) => {
  const { call, emulator } = await startFixture(t);
  const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
  const spec = { maxUnavailable: 0, selector: { matchLabels: { app: "z" } } };
  const full = { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, observedGeneration: 1 };
  emulator.store.create("pods", pod("p", { labels: { app: "z" }, spec: { nodeName: "n" }, status }));
  const evict = () =>
    call("POST", "/api/v1/namespaces/default/pods/p/eviction", {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: "p" },
    });
  add(emulator.store, "PodDisruptionBudget", "one", { spec, status: full });
  const { status: code, body } = await evict();
  assert.deepEqual([code, dig(listOf(dig(body, "details", "causes"))[0], "reason")], [429, "DisruptionBudget"]);
  add(emulator.store, "PodDisruptionBudget", "two", { spec, status: full });
  assert.equal((await evict()).status, 500);
});
