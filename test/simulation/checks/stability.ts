/** What checks leave: a rollout that they let end has ended, one that they hold stands for a reason that is named. */
import { dig, isTrue, listOf, numberOf, textOf } from "../../emulator/objects.ts";
import type { Store } from "../../emulator/store.ts";
import { GROUP, NAMESPACE, ROLLOUT_GROUPS } from "../names.ts";
import { isOf } from "../oracles/stored.ts";
import type { Shape } from "../shape.ts";
import { GATE, GATES, PHASED, PHASED_REPLICAS, PHASED_ROLLOUTS } from "./objects.ts";

const conditionOf = (object: unknown, type: string): unknown =>
  listOf(dig(object, "status", "conditions")).find((one) => dig(one, "type") === type);

/** True if the gate's check passes once the trouble has ended. */
const opensAtLast = ({ gate }: Shape): boolean =>
  !gate || gate.last === "good" || (gate.onError === "Proceed" && gate.last !== "bad");

/** True if a gate whose check does not pass may hold zones back, and says why. */
export function isGroupHeld(store: Pick<Store, "get" | "list">, shape: Shape): boolean {
  if (opensAtLast(shape)) return false;
  const open = conditionOf(store.get(GATES, NAMESPACE, GATE), "Open");
  const blocks = store
    .list(ROLLOUT_GROUPS, NAMESPACE)
    .filter((group) => dig(group, "status", "group") === GROUP)
    .flatMap((group) => listOf(dig(group, "status", "holds")));
  const isNamed = (reason: unknown): boolean => /^Gate(Waiting|Failed|Unreachable)$/.test(String(reason));
  return (
    dig(open, "status") === "False" &&
    isNamed(dig(open, "reason")) &&
    blocks.some((block) => isNamed(dig(block, "reason")))
  );
}

/** What is not as it was asked for, in words. */
export function unsettledPhased(store: Pick<Store, "get" | "list">, { phased }: Shape): string[] {
  if (!phased) return [];
  const set = store.get("statefulsets.apps", NAMESPACE, PHASED);
  const rollout = store.get(PHASED_ROLLOUTS, NAMESPACE, PHASED);
  const pods = store
    .list("pods", NAMESPACE)
    .filter((pod) => pod.metadata.labels?.["name"] === PHASED && isOf(pod, set));
  const updateRevision = dig(set, "status", "updateRevision");
  const outdated = pods.filter(({ metadata }) => metadata.labels?.["controller-revision-hash"] !== updateRevision);
  const partition = numberOf(dig(set, "spec", "updateStrategy", "rollingUpdate", "partition"));
  return [
    ...(pods.length === PHASED_REPLICAS ? [] : [`${PHASED} has ${pods.length} pods`]),
    ...pods.filter((pod) => !isTrue(pod, "Ready")).map(({ metadata }) => `pod ${metadata.name} is not ready`),
    ...(phased.last === "good" || outdated.length === 0
      ? [
          ...outdated.map(({ metadata }) => `pod ${metadata.name} is outdated`),
          ...(partition === PHASED_REPLICAS ? [] : [`${PHASED} has the partition ${String(partition)}`]),
          ...(phased.last !== "good" || dig(rollout, "status", "phase") === "Updated"
            ? []
            : [`PhasedRollout ${PHASED} is ${String(dig(rollout, "status", "phase"))}`]),
        ]
      : unexplained(rollout)),
  ];
}

/** A rollout that is held says that it goes on, and for which check it waits. */
function unexplained(rollout: unknown): string[] {
  const updated = conditionOf(rollout, "Updated");
  const step = textOf(dig(rollout, "status", "rollingPodStatus", "status")) ?? "";
  const reason = textOf(dig(updated, "reason")) ?? "";
  const isNamed = reason === "ChecksFailed" || ["WaitForChecks", "PrometheusError"].includes(step);
  return dig(updated, "status") === "False" && isNamed
    ? []
    : [`PhasedRollout ${PHASED} waits for ${step}, Updated is ${reason}`];
}
