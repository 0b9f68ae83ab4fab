/** What `zonewise doctor` finds wrong with the resources whose replicas zones mirror. Pure. */
import { findNear } from "../../infra/edit-distance.ts";
import type { HorizontalPodAutoscaler } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { annotate, type Finding } from "./findings.ts";

/** What became of the read of the resource that a zone mirrors. */
export interface MirrorReading {
  readonly zone: Zone;
  /** Why there is none; undefined if it was read. */
  readonly missing: string | undefined;
  /** The names of its kind in the namespace, if they may be listed. */
  readonly names: readonly string[];
}

/** Findings of all zones that mirror a resource, and of the autoscalers of their namespaces. */
export function examineMirrors(
  readings: readonly MirrorReading[],
  autoscalers: readonly HorizontalPodAutoscaler[],
): Finding[] {
  return [...readings.flatMap(examineMirror), ...autoscalers.flatMap((one) => examineAutoscaler(one, readings))];
}

function examineMirror({ zone, missing, names }: MirrorReading): Finding[] {
  const { mirror } = zone.scaling;
  if (!mirror || missing === undefined) return [];
  const [near] = findNear(mirror.name, names);
  return [
    {
      level: "error",
      check: "mirror-missing",
      object: `statefulset/${zone.name}`,
      message: `it mirrors ${mirror.kind}/${mirror.name}, which cannot be read (${missing}): it is not scaled`,
      fix:
        near === undefined
          ? `create ${mirror.kind} ${mirror.name} in ${zone.namespace}; or do without: ${annotate(zone, `${ANNOTATIONS.mirrorName}- ${ANNOTATIONS.mirrorKind}- ${ANNOTATIONS.mirrorApiVersion}-`)}`
          : annotate(zone, `${ANNOTATIONS.mirrorName}=${near}`),
    },
  ];
}

/** An autoscaler that may set what zones mirror to 0 takes away all pods of all of them. */
function examineAutoscaler(
  { metadata = {}, spec }: HorizontalPodAutoscaler,
  readings: readonly MirrorReading[],
): Finding[] {
  const { namespace = "", name = "" } = metadata;
  const target = spec?.scaleTargetRef;
  const mirroring = readings
    .filter(
      ({ zone: { namespace: place, scaling } }) =>
        place === namespace && scaling.mirror?.kind === target?.kind && scaling.mirror?.name === target?.name,
    )
    .map(({ zone }) => zone.name);
  if (spec?.minReplicas !== 0 || mirroring.length === 0) return [];
  return [
    {
      level: "warning",
      check: "mirror-to-zero",
      object: `hpa/${name}`,
      message: `it may scale ${target?.kind}/${target?.name} to 0, and ${mirroring.join(", ")} with it: no pod of them would be left`,
      fix: `kubectl -n ${namespace} patch hpa ${name} --type=merge -p '{"spec":{"minReplicas":1}}'`,
    },
  ];
}
