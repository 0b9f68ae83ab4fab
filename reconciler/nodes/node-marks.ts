/**
 * The cordon of a Node and its exclusion from load balancers, each with an annotation that says that it is ours. Marks
 * that a person set are never undone. Both are set in one patch, and undone in one patch, also when the shadow is gone.
 *
 *   schedulable --mark--> cordoned, `cordoned-by` --unmark--> schedulable
 *   cordoned by a person --mark--> the same, without the annotation --unmark--> the same
 */
import type { Node } from "../../infra/kubernetes/resources.ts";
import { CORDONED_BY, EXCLUDED_BY, LB_LABEL } from "./shadow.ts";

export type MarkedNode = Pick<Node, "metadata" | "spec">;

/** A merge patch of a Node with its resourceVersion as the precondition. */
export interface NodePatch {
  readonly metadata: {
    readonly resourceVersion: string | undefined;
    readonly annotations?: Readonly<Record<string, string | null>>;
    readonly labels?: Readonly<Record<string, string | null>>;
  };
  readonly spec?: { readonly unschedulable: true | null };
}

/** The values that a patch sets; null removes one. */
interface Values {
  readonly mark: string | null;
  readonly label: "True" | null;
  readonly unschedulable: true | null;
}

/** Cordons the node, and with `exclude` excludes it from load balancers; undefined if nothing is left to do. */
export function markNode(
  node: MarkedNode,
  { shadowUid, exclude }: { readonly shadowUid: string; readonly exclude: boolean },
): NodePatch | undefined {
  const parts = {
    cordon: node.spec?.unschedulable !== true,
    exclusion: exclude && node.metadata?.labels?.[LB_LABEL] === undefined,
  };
  return composePatch(node, parts, { mark: shadowUid, label: "True", unschedulable: true });
}

/** Undoes what is marked as ours: all of it, or the exclusion alone; undefined if nothing is. */
export function unmarkNode(node: MarkedNode, what: "all" | "exclusion" = "all"): NodePatch | undefined {
  const parts = { cordon: what === "all" && isMarked(node, CORDONED_BY), exclusion: isMarked(node, EXCLUDED_BY) };
  return composePatch(node, parts, { mark: null, label: null, unschedulable: null });
}

function composePatch(
  { metadata }: MarkedNode,
  { cordon, exclusion }: { readonly cordon: boolean; readonly exclusion: boolean },
  { mark, label, unschedulable }: Values,
): NodePatch | undefined {
  if (!cordon && !exclusion) return undefined;
  return {
    metadata: {
      resourceVersion: metadata?.resourceVersion,
      annotations: { ...(cordon && { [CORDONED_BY]: mark }), ...(exclusion && { [EXCLUDED_BY]: mark }) },
      ...(exclusion && { labels: { [LB_LABEL]: label } }),
    },
    ...(cordon && { spec: { unschedulable } }),
  };
}

/** True if the cordon or the exclusion of the node is ours. */
export const isOurs = (node: MarkedNode): boolean => isMarked(node, CORDONED_BY) || isMarked(node, EXCLUDED_BY);

const isMarked = (node: MarkedNode, annotation: string): boolean =>
  node.metadata?.annotations?.[annotation] !== undefined;
