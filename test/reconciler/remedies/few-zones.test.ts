/** What helps, and what is said, is true with one zone, with two, and with a zone of 0 replicas (§1.14). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { explainPod } from "../../../cli/decide/explain-group.ts";
import { withBudget } from "../../cli/decide/worlds.ts";
import { PARTITIONS } from "../../builders/budgets.ts";
import type { ZoneTraits } from "../../builders/zones.ts";

const none: ZoneTraits = { replicas: 0 };
const LEADER = "grafana.com/rollout-downscale-leader";
const ill: ZoneTraits = { pods: { 0: {}, 1: { ready: false, working: false, broken: "ImagePullBackOff" }, 2: {} } };

/** The last answer about a pod of the first zone that is not `allowed`. */
function explain(zones: readonly ZoneTraits[], spec: object, pod = 0): string {
  const world = withBudget(zones, spec);
  const found = world.zones[0]?.pods[pod] ?? assert.fail();
  const state = { namespace: "test", group: "ingester", zones: world.zones, status: undefined, generation: 1 };
  const { reason, message, remedy } = explainPod(found, state, world).findLast(({ allowed }) => !allowed) ?? {};
  return [reason, message, remedy].filter((part) => part !== undefined).join(" | ");
}

describe("what is said of few zones", () => {
  const TABLE: readonly [name: string, zones: readonly ZoneTraits[], spec: object, pod: number, says: RegExp][] = [
    [
      "one zone: its budget goes, or other zones are labelled if there are any",
      [{}],
      {},
      0,
      /^TooFewZones \| .* \| with one zone such a budget protects nothing, .*\n.* delete zpdb ingester\nor if there are other zones, /,
    ],
    [
      "a zone of no pods does not count as missing in zone mode",
      [ill, none],
      {},
      0,
      /^BudgetSpent \| (?![^]*zone-b)[^]*describe pod ingester-zone-a-1$/,
    ],
    [
      "by partition it does, and is given replicas",
      [{}, none],
      PARTITIONS,
      0,
      /^BudgetSpent \| [^]*\nor give the zone of 0 replicas pods: a budget by partition counts it as missing:\nkubectl -n test scale statefulset ingester-zone-b --replicas=3$/,
    ],
    [
      "by partition its leader is given replicas",
      [{}, { ...none, annotations: { [LEADER]: "ingester-zone-a" } }],
      PARTITIONS,
      0,
      /a budget by partition counts it as missing:\nkubectl -n test scale statefulset ingester-zone-a --replicas=3$/,
    ],
    ["by partition two zones say nothing of it", [{}, ill], PARTITIONS, 1, /^BudgetSpent \| (?!.*of 0 replicas)/],
    [
      "an ill pod of two zones keeps the other zone",
      [ill, {}],
      {},
      1,
      /^\S* ?\| ingester-zone-a-1 \(ImagePullBackOff i\) keeps group ingester waiting; .*; no pod of ingester-zone-b may be evicted \|/,
    ],
    [
      "an ill pod keeps no zone of 0 replicas",
      [ill, none],
      {},
      1,
      /^\S* ?\| ingester-zone-a-1 \(ImagePullBackOff i\) keeps group ingester waiting(?!.*zone-b)/,
    ],
    [
      "an ill pod of the only zone keeps no other zone",
      [ill],
      {},
      1,
      /^\S* ?\| ingester-zone-a-1 \(ImagePullBackOff i\) keeps group ingester waiting(?!.*may be evicted)/,
    ],
  ];
  for (const [name, zones, spec, pod, says] of TABLE) it(name, () => assert.match(explain(zones, spec, pod), says));
});
