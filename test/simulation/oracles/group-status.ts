/** What the RolloutGroup of a settled group says, against its StatefulSets and their pods. */
import { dig, fieldsOf, isTrue, listOf } from "../../emulator/objects.ts";
import type { KubeObject, Store } from "../../emulator/store.ts";
import { GROUP, NAMESPACE, ROLLOUT_GROUPS } from "../names.ts";

/** What is not true, in words. `isHeld`: a gate holds zones, so that the group may not be Ready. */
export function untrueStatus(
  store: Pick<Store, "get" | "list">,
  zones: readonly string[],
  isHeld: boolean,
): readonly string[] {
  const group = store.list(ROLLOUT_GROUPS, NAMESPACE).find((one) => dig(one, "status", "group") === GROUP);
  if (!group) return [`no RolloutGroup tells of ${GROUP}`];
  const sets = zones.flatMap((zone) => store.get("statefulsets.apps", NAMESPACE, zone) ?? []);
  const rows = listOf(dig(group, "status", "zones"));
  const rowOf = (name: string): unknown => rows.find((row) => dig(row, "name") === name);
  return [
    ...untrueConditions(group, isHeld),
    ...(rows.length === sets.length
      ? []
      : [`the RolloutGroup tells of ${rows.length} zones instead of ${sets.length}`]),
    ...sets.flatMap((set) => untrueRow(rowOf(set.metadata.name), set, store)),
  ];
}

function untrueConditions(group: KubeObject, isHeld: boolean): string[] {
  const isReady = isTrue(group, "Ready");
  const { phase, message, plan, holds, observedGeneration } = fieldsOf(group["status"]);
  const { generation } = group.metadata;
  const left = [...listOf(plan), ...listOf(holds)];
  return [
    ...(observedGeneration === generation
      ? []
      : [`the RolloutGroup is as of generation ${String(observedGeneration)}, not ${String(generation)}`]),
    ...(isHeld || isReady ? [] : [`the RolloutGroup is ${String(phase)}, not Ready: ${String(message)}`]),
    ...(isReady === (phase === "Ready")
      ? []
      : [`the RolloutGroup is ${String(phase)}, and its condition Ready says otherwise`]),
    ...(isReady && left.length > 0
      ? [`the RolloutGroup is Ready, and tells of what is left: ${JSON.stringify(left)}`]
      : []),
  ];
}

/** The numbers of a zone are those of its pods. */
function untrueRow(row: unknown, set: KubeObject, store: Pick<Store, "list">): string[] {
  const { name, generation } = set.metadata;
  const revision = dig(set, "status", "updateRevision");
  const pods = store.list("pods", NAMESPACE).filter(({ metadata }) => metadata.labels?.["name"] === name);
  const facts = {
    replicas: dig(set, "spec", "replicas"),
    pods: pods.length,
    updated: pods.filter(({ metadata }) => metadata.labels?.["controller-revision-hash"] === revision).length,
    ready: pods.filter((pod) => isTrue(pod, "Ready")).length,
    currentRevision: dig(set, "status", "currentRevision"),
    updateRevision: revision,
    generation,
  };
  return Object.entries(facts)
    .filter(([field, fact]) => dig(row, field) !== fact)
    .map(
      ([field, fact]) => `the RolloutGroup tells of ${name} ${field} ${String(dig(row, field))}, not ${String(fact)}`,
    );
}
