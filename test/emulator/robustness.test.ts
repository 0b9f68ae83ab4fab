import { test } from "node:test";
import { manualClock } from "./clock.ts";
import { CONFIG_MAPS, startFixture, watchUntil } from "./fixture.ts";

const PODS = "/api/v1/namespaces/default/pods";
const versions = [{ name: "v1", served: true, schema: { openAPIV3Schema: { type: "nonsense" } } }];
const INVALID: readonly [path: string, spec: unknown][] = [
  [PODS, { readinessGates: "x" }],
  ["/apis/policy/v1/namespaces/default/poddisruptionbudgets", { selector: { matchLabels: { "a b": "c" } } }],
  [
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    { group: "e.com", names: { plural: "ws", kind: "W" }, versions },
  ],
];

test("invalid objects are refused or ignored, and the controllers keep working", async (t) => {
  const { call, client } = await startFixture(t, { controllers: true });
  for (const [path, spec] of INVALID) await call("POST", path, { metadata: { name: "ws.e.com" }, spec });
  await call("POST", PODS, { metadata: { name: "good" } });
  await watchUntil(
    client,
    `${PODS}?watch=1&fieldSelector=status.phase=Running&resourceVersion=0`,
    ({ length }) => length > 0,
  );
});

test("a watch gets no events after its timeout", async (t) => {
  const clock = manualClock();
  const { client, emulator } = await startFixture(t, { clock });
  const { ended } = await client.watch({ path: `${CONFIG_MAPS}?watch=1&timeoutSeconds=1` }, () => {});
  const late = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default" } };
  clock.after(1000, () => void emulator.store.create("configmaps", late));
  await clock.advance(1000);
  await ended;
});
