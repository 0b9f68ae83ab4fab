/**
 * Taints and tolerations, as the scheduler reads them:
 * https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
 */

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

/** Kubernetes sets and removes these as the state of a node changes: they do not show which pods the node is for. */
const OF_STATE = /^node\.(?:cloudprovider\.)?kubernetes\.io\//;

export const isOfState = ({ key }: Taint): boolean => OF_STATE.test(key);

/** True if one of the tolerations lets a pod ignore the taint; an operator that is not known tolerates nothing. */
export function isTolerated(taint: Taint, tolerations: readonly Toleration[]): boolean {
  return tolerations.some(
    ({ effect, ...rest }) => [undefined, "", taint.effect].includes(effect) && matchesKey(taint, rest),
  );
}

/** Without a key it is for all taints, and its operator is Exists. */
function matchesKey(taint: Taint, { key = "", operator = "Equal", value = "" }: Omit<Toleration, "effect">): boolean {
  if (operator === "Exists") return key === "" || key === taint.key;
  return operator === "Equal" && key === taint.key && value === (taint.value ?? "");
}

export const describeTaint = ({ key, value, effect }: Taint): string =>
  `${key}${value === undefined || value === "" ? "" : `=${value}`}:${effect}`;
