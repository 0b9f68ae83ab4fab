/** Which labels and annotations doctor takes for mistyped ones of ours. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { diagnose } from "../../../../cli/decide/doctor/checks.ts";
import type { Keyed } from "../../../../cli/decide/doctor/check.ts";
import { findMeantKey } from "../../../../cli/decide/doctor/keys.ts";
import { ANNOTATIONS, LABELS } from "../../../../reconciler/model/annotations.ts";

const MISSES: readonly (readonly [written: string, meant: string | undefined])[] = [
  ["rollout-max-unavailble", "rollout-max-unavailable"],
  ["rollout-max-unavailabel", "rollout-max-unavailable"],
  ["grafana.com/rollout-max-unavailable", "rollout-max-unavailable"],
  ["grafana.com/rollout-pause", "grafana.com/rollout-paused"],
  ["rollout-paused", "grafana.com/rollout-paused"],
  ["zonewise.dev/rollout-paused", "grafana.com/rollout-paused"],
  ["grafna.com/rollout-paused", "grafana.com/rollout-paused"],
  ["rollout-grup", "rollout-group"],
  ["Rollout-Group", "rollout-group"],
  ["grafana.com/no-downscal", "grafana.com/no-downscale"],
  ["zonewise.dev/bypass-gate-until", "zonewise.dev/bypass-gates-until"],
  ["rollout-operator.grafana.com/no-downscale", "grafana.com/no-downscale"],
  ["rollout-operator.grafana.com/rollout-group", "rollout-group"],
  ["zonewise.dev/delete-by-hand", "zonewise/delete-by-hand"],
  ["sts.plus/paus", "sts.plus/pause"],
  ["sts.plus/promote-steps", "sts.plus/promote-step"],
  ["zonewise.dev/retry-gates", "zonewise.dev/retry-gate"],
  // Somebody else's.
  ["app", undefined],
  ["name", undefined],
  ["pause", undefined],
  ["argo.example/pause", undefined],
  ["app.kubernetes.io/name", undefined],
  ["rollout-operator", undefined],
  ["deployment.kubernetes.io/revision", undefined],
  ["kubectl.kubernetes.io/last-applied-configuration", undefined],
];
for (const [written, meant] of MISSES)
  it(`${written}: ${meant ?? "another's"}`, () => assert.equal(findMeantKey(written)?.key, meant));

it("no key of ours is taken for another", () => {
  for (const key of [...Object.values(LABELS), ...Object.values(ANNOTATIONS)])
    assert.equal(findMeantKey(key), undefined, key);
});

describe("a mistyped key", () => {
  const fixOf = (of: Partial<Keyed>): string | undefined => {
    const bare = { kind: "statefulset", namespace: "test", name: "db", labels: {}, annotations: {} };
    const [finding, ...more] = diagnose({ keyed: [{ ...bare, ...of }] });
    assert.deepEqual(more, []);
    return finding?.fix.replace("if so:\nkubectl -n test ", "");
  };
  const wrong = "rollout-max-unavailble";
  const right = "rollout-max-unavailable";

  it("is written again by its right name", () =>
    assert.equal(fixOf({ annotations: { [wrong]: "2" } }), `annotate statefulset db ${right}=2 ${wrong}-`));
  it("moves from a label to an annotation", () =>
    assert.equal(
      fixOf({ labels: { [wrong]: "2" } }),
      `annotate statefulset db ${right}=2 && kubectl -n test label statefulset db ${wrong}-`,
    ));
  it("goes where the right one has its value already", () =>
    assert.equal(fixOf({ annotations: { [wrong]: "2", [right]: "2" } }), `annotate statefulset db ${wrong}-`));
  it("is left to an editor where the right one has another value", () =>
    assert.equal(fixOf({ annotations: { [wrong]: "2", [right]: "3" } }), "kubectl -n test edit statefulset db"));
  it("puts no text of an annotation into a command", () =>
    assert.equal(fixOf({ annotations: { [wrong]: "$(reboot)" } }), "edit statefulset db"));
  it("is not said again where its reader names it", () =>
    assert.equal(fixOf({ annotations: { [wrong]: "2" }, problems: [`annotation ${wrong} is unknown`] }), undefined));
});
