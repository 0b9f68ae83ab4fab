/** Checks of `zonewise doctor`: gates and PhasedRollouts that do not do what they are for. Pure. */
import { findNear } from "../../../infra/edit-distance.ts";
import { type Gate, isReadable } from "../../../reconciler/gates/gate.ts";
import { ANNOTATIONS } from "../../../reconciler/model/annotations.ts";
import { groupKey } from "../../../reconciler/model/zone.ts";
import { how, kubectl } from "../../../reconciler/model/remedy.ts";
import type { Phased } from "../explain-phased.ts";
import { type Check, edit, type DoctorFacts, row } from "./check.ts";

const objectOfGate = ({ gate }: { readonly gate: Gate }): string => `rolloutgate/${gate.ref.name}`;
const editGate = ({ gate }: { readonly gate: Gate }): string => edit(gate.ref, "rolloutgate");
const patchGate = ({ ref }: Gate, spec: object): string =>
  kubectl(ref, `patch rolloutgate ${ref.name} --type=merge -p '${JSON.stringify({ spec })}'`);

/** Gates that can be read, with the zones of their group, and a group that may be meant. */
const readable = ({ gates, groups }: DoctorFacts) =>
  gates.filter(isReadable).map((gate) => {
    const { namespace } = gate.ref;
    const names = [...groups.keys()].flatMap((key) =>
      key.startsWith(`${namespace}/`) ? [key.slice(namespace.length + 1)] : [],
    );
    return {
      gate,
      zones: groups.get(groupKey({ namespace, group: gate.group })),
      near: findNear(gate.group, names)[0],
    };
  });

const manages = ({ namespace, name, targetRef }: Phased["rollout"], claimed: DoctorFacts["claimed"][number]): boolean =>
  namespace === claimed.namespace && name === claimed.owner && targetRef === claimed.name;

export const ROLLOUTS: readonly Check[] = [
  row({
    // As in a copy of a managed StatefulSet, or after the finalizer of its PhasedRollout was removed by hand.
    check: "phased-claim",
    level: "error",
    when: ({ phased, claimed }) => claimed.filter((one) => !phased.some(({ rollout }) => manages(rollout, one))),
    object: ({ name }) => `statefulset/${name}`,
    message: ({ owner }) =>
      `its annotation ${ANNOTATIONS.phasedRollout} names PhasedRollout ${owner}, which does not exist or has another target: new templates wait, and nothing releases them`,
    fix: (set) =>
      how(
        "remove the annotation; then set the partition to 0 to release a template that waits",
        kubectl(
          set,
          `annotate statefulset ${set.name} ${ANNOTATIONS.phasedRollout}- ${ANNOTATIONS.originalPartition}-`,
        ),
      ),
  }),
  row({
    check: "gate-not-valid",
    level: "error",
    when: ({ gates, groups }) =>
      gates.flatMap((gate) => {
        const isFalse = gate.conditions.find(({ type, status }) => type === "Valid" && status === "False");
        const hasGroup = groups.has(groupKey({ namespace: gate.ref.namespace, group: gate.group }));
        const problem = isFalse && hasGroup ? `it is not valid: ${isFalse.reason}, ${isFalse.message}` : undefined;
        const why = isReadable(gate) ? problem : "none of its checks can be read: it never opens";
        return why === undefined ? [] : [{ gate, why }];
      }),
    object: objectOfGate,
    message: ({ why }) => why,
    fix: editGate,
  }),
  row({
    check: "gate-without-group",
    level: "warning",
    when: (facts) => readable(facts).filter(({ zones }) => !zones),
    object: objectOfGate,
    message: ({ gate, near }) =>
      `there is no rollout group ${gate.group}${near === undefined ? "" : `; did you mean ${near}?`} (the gate has no effect)`,
    fix: ({ gate, near }) => (near === undefined ? editGate({ gate }) : how("if so", patchGate(gate, { group: near }))),
  }),
];
