/** Findings of `zonewise doctor` about the resources whose replicas zones mirror, and about autoscalers. Pure. */
import { findNear } from "../../infra/edit-distance.ts";
import type { HorizontalPodAutoscaler } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import { listSome } from "../../reconciler/model/list-some.ts";
import { groupKey, type Zone } from "../../reconciler/model/zone.ts";
import { annotate, isGrouped, type Finding } from "./findings.ts";

type ScaleTarget = NonNullable<HorizontalPodAutoscaler["spec"]>["scaleTargetRef"];

/** The result of reading the resource that a zone mirrors. */
export interface MirrorReading {
  readonly zone: Zone;
  /** The reason why the resource was not read; undefined if it was. */
  readonly missing: string | undefined;
  /** The names of its kind in the namespace, if they may be listed. */
  readonly names: readonly string[];
}

/** Findings of all zones that mirror a resource. */
export const examineMirrors = (readings: readonly MirrorReading[]): Finding[] => readings.flatMap(examineMirror);

/** Findings of the autoscalers of these zones, or of the resources that they mirror. */
export const examineAutoscalers = (
  autoscalers: readonly HorizontalPodAutoscaler[],
  zones: readonly Zone[],
): Finding[] => autoscalers.flatMap((one) => examineAutoscaler(one, zones));

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

/**
 * An autoscaler that may scale a zone, or a resource that zones mirror, to 0: all zones that mirror or follow it are
 * scaled to 0 as well (§1.14.3).
 */
function examineAutoscaler({ metadata = {}, spec }: HorizontalPodAutoscaler, zones: readonly Zone[]): Finding[] {
  const { namespace = "", name = "" } = metadata;
  const target = spec?.scaleTargetRef;
  if (spec?.minReplicas !== 0 || !target) return [];
  const near = zones.filter((zone) => zone.namespace === namespace);
  const going = withFollowers(
    near.filter((zone) => isTarget(zone, target) || mirrors(zone, target)),
    near,
  );
  if (going.length === 0) return [];
  const others = going.filter((zone) => !isTarget(zone, target)).map((zone) => zone.name);
  return [
    {
      level: "warning",
      check: others.length < going.length ? "zone-to-zero" : "mirror-to-zero",
      object: `hpa/${name}`,
      message: `it may scale ${target.kind}/${target.name} to 0${describeOthers(others)}: ${describeLeft(going, near)}`,
      fix: `kubectl -n ${namespace} patch hpa ${name} --type=merge -p '{"spec":{"minReplicas":1}}'`,
    },
  ];
}

const describeOthers = (names: readonly string[]): string =>
  names.length === 0 ? "" : `, and ${listSome(names)} with it`;

/** Describes the zones that would remain in the groups of these zones. */
function describeLeft(going: readonly Zone[], zones: readonly Zone[]): string {
  const groups = new Set(going.filter(isGrouped).map(groupKey));
  const left = zones.filter((zone) => groups.has(groupKey(zone)) && !going.includes(zone)).map((zone) => zone.name);
  const them = going.length === 1 ? "it" : "them";
  if (left.length === 0) return `no pod of ${them} would be left`;
  if (left.length > 1) return `no pod of ${them} would be left, and ${listSome(left)} would not wait for ${them}`;
  return `${left[0]} alone would serve, and nothing would be kept whole while it rolls out or is drained`;
}

const mirrors = ({ scaling: { mirror } }: Zone, { kind, name }: ScaleTarget): boolean =>
  mirror?.kind === kind && mirror.name === name;

const isTarget = (zone: Zone, { apiVersion = "apps/v1", kind, name }: ScaleTarget): boolean =>
  zone.name === name && kind === "StatefulSet" && apiVersion.startsWith("apps/");

/** These zones, and the zones of their groups that follow one of them. */
function withFollowers(zones: readonly Zone[], all: readonly Zone[]): Zone[] {
  const going = new Set(zones);
  // The set grows during the iteration.
  for (const leader of going)
    for (const zone of all)
      if (zone.scaling.leader === leader.name && groupKey(zone) === groupKey(leader)) going.add(zone);
  return [...going];
}
