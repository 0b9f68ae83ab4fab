/**
 * Does an eviction webhook guard the pods of a namespace: is it registered, does it select them, can it be called, and
 * did it answer a probe? Without a webhook that asks it, a budget protects nothing. Pure.
 */
import { fieldsOf } from "../../infra/json.ts";
import { matchesSelector, type LabelSelector } from "../model/label-selector.ts";
import type { Labels } from "../model/zone.ts";

/** The paths of the eviction webhook. */
export const EVICTION_PATHS: readonly string[] = [
  "/admission/pod-eviction",
  "/pods/eviction",
  "/admission/mutate-pod-eviction",
];

/**
 * Annotation of an Eviction that only asks whether the webhook answers: it is refused, whatever the budget says. Only
 * a refusal proves that a webhook has judged the eviction.
 */
export const PROBE = "zonewise/probe";
export const PROBE_ANSWER = "the eviction webhook answers: this was a probe, and evicts nothing";

export const isProbe = (eviction: unknown): boolean =>
  fieldsOf(fieldsOf(fieldsOf(eviction)["metadata"])["annotations"])[PROBE] !== undefined;

/** An entry of a webhook configuration that is called for evictions, or for deletions of pods, at one of our paths. */
export interface EvictionHook {
  /** The names of the configuration and of the entry. */
  readonly configuration: string;
  readonly name: string;
  readonly failsOpen: boolean;
  readonly namespaceSelector: LabelSelector;
  readonly objectSelector: LabelSelector;
  /** CEL, which is not evaluated here. */
  readonly hasConditions: boolean;
  /** `namespace/name`; undefined for a URL. */
  readonly service: string | undefined;
  /** The problem of the CA bundle, by itself or with the served certificate; undefined if none is found. */
  readonly caProblem: string | undefined;
}

/** The result of a dry-run eviction with the annotation PROBE. */
export type Probe =
  | { readonly result: "answered" | "allowed" }
  | { readonly result: "failed" | "unclear" | "notTried"; readonly why: string };

export interface GuardFacts {
  readonly namespace: string;
  /** Labels of the namespace; those of its name alone, if it could not be read. */
  readonly labels: Labels;
  /** False if others may be missing. */
  readonly labelsKnown: boolean;
  /** Undefined if the configurations could not be read: `unread` says why. */
  readonly hooks: readonly EvictionHook[] | undefined;
  /** Ready endpoints of each Service; a Service that is missing here could not be read. */
  readonly endpoints: ReadonlyMap<string, number>;
  readonly probe: Probe | undefined;
  readonly unread: readonly string[];
}

export type GuardReason = "Guarded" | "NoWebhook" | "WebhookDown" | "NotSeen";

export interface Guard {
  /**
   * `guarded`: it has answered a probe. `open`: evictions are executed unjudged. `down`: the webhook cannot be called and fails
   * closed, all evictions are refused. `unknown`: it was not seen.
   */
  readonly state: "guarded" | "open" | "down" | "unknown";
  readonly reason: GuardReason;
  readonly message: string;
  /** How to fix it; "" if nothing is wrong. */
  readonly remedy: string;
}

const APPLY = "docs/install.md, Webhooks: kubectl apply -k infra/manifests/webhooks (or complete, with your namespace)";

export function judgeGuard(facts: GuardFacts): Guard {
  const { namespace, hooks, probe, unread } = facts;
  if (probe?.result === "answered") return guarded(facts);
  if (!hooks) {
    const why = [...unread, ...(probe && "why" in probe ? [probe.why] : [])].join("; ");
    return unseen(`whether a webhook guards ${namespace} was not seen: ${why}`);
  }
  if (hooks.length === 0)
    return open(
      "NoWebhook",
      `no webhook configuration sends evictions to the disruption budgets: every eviction in ${namespace} is executed unjudged`,
      APPLY,
    );
  const selecting = hooks.filter((hook) => selects(hook, facts));
  // The API server calls all of them: one that fails closed refuses, whatever the others answer.
  const refusing = selecting.find((hook) => !hook.failsOpen && !isCallable(hook, facts));
  const hook = refusing ?? selecting.find((one) => isCallable(one, facts)) ?? selecting[0];
  return hook ? judgeHook(hook, facts) : notSelected(hooks, facts);
}

/**
 * True if it gets every eviction in a namespace with these labels. An eviction has labels only if its client sets
 * them.
 */
export const selects = (hook: EvictionHook, facts: Labelled): boolean =>
  selectsNamespace(hook, facts) && takesEvictions(hook);

type InNamespace = Pick<EvictionHook, "namespaceSelector">;
type Labelled = Pick<GuardFacts, "labels" | "labelsKnown">;

/** False if the labels that it asks for are not known. */
export const selectsNamespace = (one: InNamespace, facts: Labelled): boolean =>
  isKnown(one, facts) && matchesSelector(one.namespaceSelector, facts.labels);

const takesEvictions = ({ objectSelector }: EvictionHook): boolean => matchesSelector(objectSelector, {});

/** Every namespace has its name as a label; other labels are unknown before the namespace is read. */
const isKnown = ({ namespaceSelector }: InNamespace, { labelsKnown }: Pick<GuardFacts, "labelsKnown">): boolean =>
  labelsKnown ||
  [
    ...Object.keys(namespaceSelector.matchLabels ?? {}),
    ...(namespaceSelector.matchExpressions ?? []).map(({ key }) => key),
  ].every((key) => key === "kubernetes.io/metadata.name");

/** False if its selector asks for the name alone, and does not match the namespace. */
export function maySelect(hook: EvictionHook, namespace: string): boolean {
  const labels = { "kubernetes.io/metadata.name": namespace };
  return !isKnown(hook, { labelsKnown: false }) || matchesSelector(hook.namespaceSelector, labels);
}

const isCallable = (hook: EvictionHook, facts: GuardFacts): boolean => whyNotCallable(hook, facts) === undefined;

function notSelected(hooks: readonly EvictionHook[], facts: GuardFacts): Guard {
  const { namespace } = facts;
  const [first] = hooks;
  const name = first?.configuration ?? "";
  if (hooks.some((one) => takesEvictions(one) && !isKnown(one, facts)))
    return unseen(
      `whether ${name} selects namespace ${namespace} was not seen: its labels, the name apart, could not be read`,
    );
  const byObject = first && !takesEvictions(first);
  const why = byObject ? "its objectSelector selects no Eviction, which has no labels" : "by its namespaceSelector";
  return open(
    "NoWebhook",
    `${name} does not select evictions in ${namespace} (${why}): each is executed unjudged`,
    `kubectl get mutatingwebhookconfiguration,validatingwebhookconfiguration ${name} -o yaml; ${APPLY}`,
  );
}

function judgeHook(hook: EvictionHook, facts: GuardFacts): Guard {
  const { namespace, probe } = facts;
  const why = probe?.result === "failed" ? probe.why : whyNotCallable(hook, facts);
  if (why !== undefined) return notCallable(hook, why, namespace);
  if (probe?.result === "allowed") return notAsked(hook, namespace);
  return unseen(whyNotSeen(hook, facts));
}

/** A probe was allowed, which our webhook never does. */
function notAsked({ configuration, name, hasConditions, failsOpen }: EvictionHook, namespace: string): Guard {
  if (!hasConditions && !failsOpen) return unseen(`${name} did not answer a probe: do the functions run this version?`);
  const why = hasConditions ? "its matchConditions leave it out" : "it fails open and does not answer";
  return open(
    "NoWebhook",
    `a dry-run eviction in ${namespace} was allowed without an answer of ${name}: ${why}`,
    `kubectl get mutatingwebhookconfiguration,validatingwebhookconfiguration ${configuration} -o yaml`,
  );
}

/** A configuration without problems does not prove that the webhook answers. */
function whyNotSeen(hook: EvictionHook, { namespace, probe, endpoints, unread }: GuardFacts): string {
  const { name, service, hasConditions } = hook;
  if (probe?.result === "unclear") return `${name} was not seen to answer: ${probe.why}`;
  const why = probe?.result === "notTried" ? `: ${probe.why}` : "";
  const untried = `a dry-run eviction was not tried${why}`;
  if (hasConditions) return `whether the matchConditions of ${name} reach evictions was not seen; ${untried}`;
  if (service !== undefined && !endpoints.has(service))
    return `whether Service ${service} of ${name} has ready endpoints was not seen: ${unread.join("; ")}; ${untried}`;
  return `${name} is registered for evictions in ${namespace}, and was not seen to answer; ${untried}`;
}

/** The reason why the API server cannot call it; undefined if none is found. */
export function whyNotCallable(
  { service, caProblem }: EvictionHook,
  { endpoints }: Pick<GuardFacts, "endpoints">,
): string | undefined {
  if (service !== undefined && endpoints.get(service) === 0)
    return `Service ${service} does not exist or has no ready endpoint`;
  return caProblem;
}

function notCallable({ name, failsOpen, service }: EvictionHook, why: string, namespace: string): Guard {
  const [home = namespace, named = "rollout-operator"] = service?.split("/") ?? [];
  const consequence = failsOpen
    ? `it fails open: every eviction in ${namespace} is executed unjudged`
    : `it fails closed: every eviction in ${namespace} is refused`;
  return {
    state: failsOpen ? "open" : "down",
    reason: "WebhookDown",
    message: `${name} cannot be called, ${why}; ${consequence}`,
    remedy: cureCall(why, home, named),
  };
}

/** The name of our webhooks' Service, the same as the original's. */
const OURS = "rollout-operator";

function cureCall(why: string, home: string, service: string): string {
  const look = `kubectl -n ${home} get deployments,pods,endpointslices`;
  if (/x509|caBundle|certificate/.test(why))
    return `apply the webhooks again, and the reconciler gives them the CA: ${APPLY}; docs/certificates.md, In trouble`;
  if (service !== OURS) return `see what serves ${service}: ${look}; remove the configuration if nothing is to`;
  return `see why no pod of the functions is ready: ${look}; if they were scaled to none: kubectl -n ${home} scale deployment zonewise-functions --replicas=2`;
}

function guarded(facts: GuardFacts): Guard {
  const { hooks = [], namespace } = facts;
  const hook = hooks.find((one) => selects(one, facts)) ?? hooks[0];
  const name = hook?.name ?? "the eviction webhook";
  const opens = hook?.failsOpen ? "; it fails open while the functions do not answer" : "";
  return {
    state: "guarded",
    reason: "Guarded",
    message: `${name} has answered a probe for evictions in ${namespace}${opens}`,
    remedy: "",
  };
}

const open = (reason: GuardReason, message: string, remedy: string): Guard => ({
  state: "open",
  reason,
  message,
  remedy,
});

const unseen = (message: string): Guard => ({
  state: "unknown",
  reason: "NotSeen",
  message,
  remedy: "as one who may list webhook configurations and endpointslices, and create pods/eviction: zonewise doctor",
});
