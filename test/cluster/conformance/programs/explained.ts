/** What may differ between the two clusters, each with its reason. */
import type { Difference } from "../compare.ts";

export interface Explanation {
  /** The kinds of steps: a part of "POST pods {...}". Any, if there is none. */
  readonly step?: RegExp;
  /** The field's path in what is recorded of a step. */
  readonly field: RegExp;
  readonly expected?: RegExp;
  readonly actual?: RegExp;
  readonly reason: string;
}

/** Of our own definitions the faults are known in full. */
const BUILT_IN = /^\d+: (?!\w+ (?:zoneaware|phased|replicat|rolloutg))/;

const EXPLAINED: readonly Explanation[] = [
  {
    step: BUILT_IN,
    field: /answer\.invalid\.(?:text|details\.causes)/,
    reason:
      "what is invalid in an object of a built-in kind is refused, in words of the embedded cluster's own and not in full",
  },
  {
    field: /data\.ca\.crt$|annotations\.kubernetes\.io\/description$/,
    reason: "the certificate that a cluster publishes in each namespace is its own",
  },
  {
    step: /\/status[ ?]/,
    field: /answer\.invalid\.details\.causes\.status\./,
    reason: "what is invalid in the status of a custom resource is named from the status on in the message",
  },
  {
    field: /conditions\.\d+\.message$|causes\.\d+\.message$/,
    actual: /found no controllers for pod/,
    reason: "which of several pods without a controller is named is chance",
  },
  {
    field: /answer\.invalid\.details\.causes\./,
    actual: /accessor error|non-negative integer/,
    reason: "what is wrong with the replicas or the selector of a custom resource is found a second time by its scale",
  },
  {
    step: /DELETE pods/,
    field: /answer\.body\.metadata\.resourceVersion$/,
    reason: "a pod that goes at once is answered with the version of its last state, or with none",
  },
  {
    field: /answer\.changed$/,
    expected: /^false$/,
    reason: "a write that changes nothing may still change who manages a field: there are no managed fields",
  },
  {
    step: / pods/,
    field: /answer\.body\..*status\.(?:conditions\.\d+\.status|containerStatuses\.\d+\.(?:ready|started))$/,
    reason: "how ready a pod was when it began to go depends on the speed of controllers",
  },
  {
    step: / pods|the end/,
    field:
      /(?:objects\.pods\/[^.]+|answer\.body)\.(?:metadata\.labels|spec\.nodeName|status\.(?:conditions|containerStatuses|hostIP|phase|podIPs?|startTime))$/,
    actual: /^(?:undefined|"Pending")$/,
    reason: "a pod whose owner never was may be deleted before it is bound to a node, or after that",
  },
  {
    field: /answer\.warnings$/,
    actual: /unknown field|prefer a domain-qualified/,
    reason: "warnings are not given: of unknown fields, which are left out, and of finalizers without a domain",
  },
  {
    field: /answer\.body\.message$/,
    actual: /StorageError: invalid object, Code: 4, Key: /,
    reason: "the key in etcd, which a conflict of UIDs names",
  },
  {
    field: /answer\.(?:body\.message|invalid\.(?:details\.causes|text))/,
    actual: /json: |unmarshal|"patch"|strict decoding/i,
    reason: "what is of the wrong type is refused in the words of Go's decoder",
  },
  {
    field:
      /spec\.(?:containers\.\d+\.volumeMounts|volumes|enableServiceLinks|preemptionPolicy|priority|tolerations|serviceAccount(?:Name)?)$/,
    expected: /^undefined$/,
    reason:
      "the admission plugins ServiceAccount, Priority and DefaultTolerationSeconds are not there: nothing reads what they add to pods",
  },
];

const text = (value: unknown): string => JSON.stringify(value) ?? "undefined";

/** The row that explains the difference; `expected` is the embedded cluster's. */
export function explain({ step, field, expected, actual }: Difference): Explanation | undefined {
  return EXPLAINED.find(
    (row) =>
      row.field.test(field) &&
      (row.step?.test(step) ?? true) &&
      (row.expected?.test(text(expected)) ?? true) &&
      (row.actual?.test(text(actual)) ?? true),
  );
}
