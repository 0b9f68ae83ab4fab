/** What doctor proposes about a minimum time shortens nobody's wait, a rollout-operator's before 0.39 included. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { examineMinTimes } from "../../../cli/decide/min-time-findings.ts";
import { statefulSetObject } from "../../reconciler/builders.ts";

const KEY = "grafana.com/min-time-between-zones-downscale";
const annotate = (value: string) => `kubectl -n test annotate --overwrite statefulset db ${KEY}=${value}`;
const old = "rollout-operator before 0.39, which reads the label alone, serves test";
const remove = `unless a ${old}: kubectl -n test label statefulset db ${KEY}-`;
const CASES = [
  { label: undefined, annotation: undefined, alone: undefined, beside: undefined },
  { label: undefined, annotation: "12h", alone: undefined, beside: undefined },
  { label: "12h", annotation: "12h", alone: remove, beside: undefined },
  {
    label: "12h",
    annotation: undefined,
    alone: `${annotate("12h")}; then, ${remove}`,
    beside: `${annotate("12h")}; the label goes once no ${old}`,
  },
  { label: "12h", annotation: "1h", alone: remove, beside: annotate("12h") },
  {
    label: "1h",
    annotation: "12h",
    alone: remove,
    beside: `kubectl -n test label --overwrite statefulset db ${KEY}=12h`,
  },
  { label: "1h", annotation: "x; rm", alone: remove, beside: "kubectl -n test edit statefulset db" },
  { label: "x", annotation: "1h", alone: remove, beside: "kubectl -n test edit statefulset db" },
];
for (const { label, annotation, alone, beside } of CASES)
  for (const [isServed, fix] of [
    [false, alone],
    [true, beside],
  ] as const)
    it(`label ${label}, annotation ${annotation}, ${isServed ? "while the original may serve" : "without the original"}`, () => {
      const labels = label === undefined ? {} : { [KEY]: label };
      const annotations = annotation === undefined ? {} : { [KEY]: annotation };
      const findings = examineMinTimes([statefulSetObject({ name: "db", labels, annotations })], () => isServed);
      assert.deepEqual(
        findings.map((one) => [one.level, one.check, one.object, one.fix]),
        fix === undefined ? [] : [["warning", "old-label", "statefulset/db", fix]],
      );
    });
