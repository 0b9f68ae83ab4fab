import assert from "node:assert/strict";
import { it } from "node:test";
import { type Finding, sortFindings } from "../../../../cli/decide/doctor/check.ts";

const finding = (level: Finding["level"], check: string, fix: string): Finding => ({
  level,
  check,
  object: "o",
  message: "m",
  fix,
});

it("errors come first, and a change is proposed once, by the gravest finding", () => {
  const change = "kubectl -n test label --overwrite statefulset a rollout-group=db";
  const found = [
    finding("warning", "single-zone", `if so: ${change}`),
    finding("warning", "one", "kubectl -n test edit statefulset a"),
    finding("error", "leader-missing", change),
    finding("error", "two", "kubectl -n test edit statefulset a"),
  ];
  assert.deepEqual(
    sortFindings(found).map(({ check }) => check),
    ["leader-missing", "two", "one"],
  );
});
