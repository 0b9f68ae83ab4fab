/** A node and its shadow, as the rules see them. */
import * as z from "zod/mini";
import type { CustomObject } from "../../infra/kubernetes/custom-resources.ts";
import type { Node } from "../../infra/kubernetes/resources.ts";
import { readIdentity } from "../../infra/kubernetes/identity.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import {
  CORDONED_BY,
  EXCLUDED_BY,
  MANAGED_LABEL,
  MANAGED_VALUE,
  shadowSpec,
  shadowStatus,
  type ShadowSpec,
  type ShadowStatus,
} from "./shadow.ts";

export interface Shadow {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly terminating: boolean;
  /** The node that its first owner reference names. */
  readonly owner: { readonly name: string; readonly uid: string } | undefined;
  readonly spec: ShadowSpec;
  /** Undefined while the agent has not reported. */
  readonly status: ShadowStatus | undefined;
  /** Why its spec or its status cannot be read. */
  readonly problem?: string;
}

export interface UpdateNode {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly managed: boolean;
  /** "" where the node has no zone label. */
  readonly zone: string;
  readonly ready: boolean;
  /** When the condition Ready last changed, milliseconds; undefined if it does not say. */
  readonly readySince: number | undefined;
  /** The id of the boot that the kubelet runs in; "" if the kubelet has not reported it. */
  readonly bootId: string;
  readonly terminating: boolean;
  /** The taint by which an autoscaler says that it removes the node. */
  readonly removedBy: string | undefined;
  readonly unschedulable: boolean;
  /** UID of the shadow for which we cordoned it, or excluded it from load balancers. */
  readonly cordonedBy: string | undefined;
  /** The annotations by which we keep autoscalers away, separated by commas. */
  readonly protectedBy: string | undefined;
  readonly annotations: Readonly<Record<string, string>>;
  readonly shadow: Shadow | undefined;
}

const ZONE_LABEL = "topology.kubernetes.io/zone";
/** On a Node whose scale-down we prevent: which annotations are ours, separated by commas. */
export const PROTECTED_BY = "zonewise.dev/protected-by";
const REMOVAL_TAINTS: ReadonlySet<string> = new Set(["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"]);

/** Reads the fields that the rules need of a Node. */
export function readNode({ metadata = {}, spec, status }: Node, shadow: Shadow | undefined): UpdateNode {
  const { name, uid, resourceVersion } = readIdentity(metadata);
  return {
    name,
    uid,
    resourceVersion,
    ...readMarks(metadata),
    ...readNodeHealth(status),
    terminating: metadata.deletionTimestamp !== undefined,
    removedBy: spec?.taints?.find(({ key }) => REMOVAL_TAINTS.has(key))?.key,
    unschedulable: spec?.unschedulable ?? false,
    shadow,
  };
}

function readMarks({ labels = {}, annotations = {} }: NonNullable<Node["metadata"]>) {
  return {
    annotations,
    managed: labels[MANAGED_LABEL] === MANAGED_VALUE,
    zone: labels[ZONE_LABEL] ?? "",
    cordonedBy: annotations[CORDONED_BY] ?? annotations[EXCLUDED_BY],
    protectedBy: annotations[PROTECTED_BY],
  };
}

/** The kubelet's report about the node itself. */
export function readNodeHealth(status: Node["status"]) {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return {
    ready: ready?.status === "True",
    readySince: parseTimestamp(ready?.lastTransitionTime ?? ""),
    bootId: status?.nodeInfo?.bootID ?? "",
  };
}

const reportedStatus = z.nullish(shadowStatus);

/** Reads a shadow as stored. */
export function readShadow({ metadata, spec, status }: CustomObject): Shadow {
  const owner = metadata.ownerReferences?.[0];
  const wanted = shadowSpec.safeParse(spec);
  const reported = reportedStatus.safeParse(status);
  const problem = problemOf(wanted.error ?? reported.error);
  return {
    ...readIdentity(metadata),
    terminating: metadata.deletionTimestamp !== undefined,
    owner: owner && { name: owner.name, uid: owner.uid },
    spec: wanted.data ?? { state: "Idle" },
    status: reported.data ?? undefined,
    ...(problem !== undefined && { problem }),
  };
}

function problemOf(error: z.core.$ZodError | undefined): string | undefined {
  const [issue] = error?.issues ?? [];
  return issue && `${issue.path.join(".")}: ${issue.message}`;
}

/** True if the shadow belongs to this very node, not to one of the same name before it. */
export const belongsTo = ({ owner }: Shadow, { uid }: Pick<UpdateNode, "uid">): boolean =>
  owner === undefined || owner.uid === uid;
