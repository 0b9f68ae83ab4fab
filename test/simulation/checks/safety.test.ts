/** The oracle of gates against bypasses: it must condemn a zone that begins with one that does not count. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { drawFrom } from "../draw.ts";
import { GROUP, NAMESPACE } from "../names.ts";
import { drawShape } from "../shape.ts";
import { drawGate, GATES, gateObject } from "./objects.ts";
import { createCheckSafety } from "./safety.ts";

const START = Date.UTC(2026, 0, 1);
const ZONE = `${GROUP}-zone-a`;
const [OLD, NEW] = [`${ZONE}-old`, `${ZONE}-new`];
const [MINUTE_MS, DAY_MS] = [60_000, 86_400_000];
const SETS = "statefulsets.apps";

const stored = (name: string, fields: object, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  ...fields,
  metadata: {
    namespace: NAMESPACE,
    name,
    uid: name,
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
    ...metadata,
  },
});

const set = (updateRevision: string, bypass?: string): KubeObject =>
  stored(
    ZONE,
    { status: { updateRevision } },
    { annotations: bypass === undefined ? {} : { "zonewise.dev/bypass-gates-until": bypass } },
  );

const pod = (deletionTimestamp?: string): KubeObject =>
  stored(
    `${ZONE}-0`,
    { status: { conditions: [{ type: "Ready", status: "True" }] } },
    { labels: { "controller-revision-hash": OLD }, ...(deletionTimestamp !== undefined && { deletionTimestamp }) },
  );

/** Plays the bypasses, each written so long after the new template, and a zone that begins at the end of it. */
function play(bypasses: readonly (readonly [atMs: number, written: string | undefined])[], beginsAtMs: number): number {
  let now = START;
  let violations = 0;
  const shape = { ...drawShape(drawFrom(1)), zones: [ZONE], replicas: 1, skewMs: 0 };
  const { onEvent } = createCheckSafety({
    shape,
    violated: () => void violations++,
    listPods: () => [pod()],
    now: () => now,
    decidedMs: () => 15_000,
  });
  const happen = (resource: string, object: KubeObject, previous?: KubeObject): void => {
    const event: StoreEvent = {
      type: previous ? "MODIFIED" : "ADDED",
      resource,
      object,
      ...(previous && { previous }),
    };
    onEvent(event, { actor: "reconciler-1", call: "" });
  };
  const when = ["BeforeFirstZone", "BetweenZones"];
  const gate = gateObject({ ...drawGate(drawFrom(1)), when, onError: "Wait" });
  happen(GATES, stored("errors", gate, { generation: 1 }));
  happen(SETS, set(OLD));
  now += MINUTE_MS;
  happen(SETS, set(OLD), set(OLD));
  happen(SETS, set(NEW), set(OLD));
  const changed = now;
  for (const [atMs, written] of bypasses) {
    now = changed + atMs;
    happen(SETS, set(NEW, written), set(NEW));
  }
  now = changed + beginsAtMs;
  happen("pods", pod(new Date(now).toISOString()), pod());
  return violations;
}

/** As it is written one minute after the start, when the template changes. */
const ahead = (ms: number): string => new Date(START + MINUTE_MS + ms).toISOString();

describe("a zone that begins without its checks", () => {
  const CASES: readonly (readonly [string, Parameters<typeof play>, isCondemned: boolean])[] = [
    ["without a bypass", [[], MINUTE_MS], true],
    ["within its bypass", [[[0, ahead(5 * MINUTE_MS)]], MINUTE_MS], false],
    ["within a bypass of 24 hours", [[[0, ahead(DAY_MS)]], DAY_MS - MINUTE_MS], false],
    ["as it was decided just before its bypass was over", [[[0, ahead(MINUTE_MS)]], MINUTE_MS + 20_000], false],
    ["after its bypass", [[[0, ahead(MINUTE_MS)]], 10 * MINUTE_MS], true],
    ["with a bypass that was over as it was written", [[[0, ahead(-DAY_MS)]], MINUTE_MS], true],
    ["with a bypass of more than 24 hours", [[[0, ahead(DAY_MS + 1000)]], MINUTE_MS], true],
    ["with one of two days, a day later", [[[0, ahead(2 * DAY_MS)]], DAY_MS + MINUTE_MS], true],
    ["with a bypass that names no time", [[[0, "tomorrow"]], MINUTE_MS], true],
    [
      "just after its bypass was taken back",
      [
        [
          [0, ahead(DAY_MS)],
          [MINUTE_MS, undefined],
        ],
        MINUTE_MS + 10_000,
      ],
      false,
    ],
    [
      "long after its bypass was taken back",
      [
        [
          [0, ahead(DAY_MS)],
          [MINUTE_MS, undefined],
        ],
        5 * MINUTE_MS,
      ],
      true,
    ],
  ];
  for (const [what, played, isCondemned] of CASES)
    it(`${what} is ${isCondemned ? "" : "not "}condemned`, () => assert.equal(play(...played), isCondemned ? 1 : 0));
});
