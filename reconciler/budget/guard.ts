/**
 * Does a webhook ask the budgets of a namespace about evictions? Without one, a budget protects nothing. Two facts tell:
 * which webhooks are registered for evictions, and what became of a probe, an eviction that evicts nothing (§5.10).
 *
 *   nothing is registered      -> NoWebhook    every eviction happens unchecked
 *   the probe was refused      -> Guarded      by our webhook, which answers
 *   the probe was allowed      -> NoWebhook    selectors or conditions leave it out, or the webhook fails open and is down
 *   it could not be called     -> WebhookDown  it fails closed: every eviction is refused
 *   no probe, or another answer -> NotSeen
 *
 * A configuration without a fault is no proof: only an answer is. Pure.
 */
import { listSome } from "../../infra/cut.ts";
import { either, how, kubectl } from "../model/remedy.ts";

/** The paths of the eviction webhook. */
export const EVICTION_PATHS: readonly string[] = [
  "/admission/pod-eviction",
  "/pods/eviction",
  "/admission/mutate-pod-eviction",
];

/** Annotation of an Eviction that only asks whether the webhook answers: it is refused, whatever the budget says. */
export const PROBE = "zonewise/probe";
export const PROBE_ANSWER = "the eviction webhook answers: this was a probe, and evicts nothing";

/** An entry of a webhook configuration that sends requests to a path of ours. */
export interface Hook {
  readonly configuration: string;
  readonly name: string;
  readonly failsOpen: boolean;
  /** `namespace/name`; undefined for a URL. */
  readonly service: string | undefined;
}

export interface Registered {
  /** Undefined if it could not be read: `unread` says why. */
  readonly hooks: readonly Hook[] | undefined;
  readonly unread: readonly string[];
}

/** What became of a probe; `by` is the name of the webhook that the API server gives. */
export type Probe =
  | { readonly result: "allowed" }
  | { readonly result: "answered"; readonly by: string }
  | { readonly result: "failed"; readonly by: string; readonly why: string }
  /** `notTried`: its sender may not create evictions. */
  | { readonly result: "unclear" | "notTried"; readonly why: string };

export interface Guard {
  readonly reason: "Guarded" | "NoWebhook" | "WebhookDown" | "NotSeen";
  readonly message: string;
  /** How to fix it; "" if nothing is wrong. */
  readonly remedy: string;
}

const APPLY = how(
  "install them, with your namespace (docs/start/install.md)",
  "kubectl apply -k infra/manifests/complete",
);

/** Where nothing is registered, nobody needs to ask. */
export const isUnregistered = ({ hooks }: Registered): boolean => hooks?.length === 0;

/** `probe` is undefined where nothing is registered. */
export function judgeGuard(namespace: string, registered: Registered, probe: Probe | undefined): Guard {
  const { hooks = [] } = registered;
  switch (probe?.result) {
    case undefined:
      return unasked(
        `no webhook configuration sends evictions to the disruption budgets: every eviction in ${namespace} happens unchecked`,
      );
    case "answered":
      return answered(namespace, hooks, probe.by);
    case "allowed":
      return allowed(namespace, hooks);
    case "failed":
      return down(namespace, hooks, probe);
    case "unclear":
      return unseen(namespace, registered, probe.why);
    case "notTried":
      return unseen(namespace, registered, `a dry-run eviction was not tried: ${probe.why}`);
    default:
      return probe satisfies never;
  }
}

const listNames = (hooks: readonly Hook[]): string => listSome(hooks.map(({ name }) => name));

function answered(namespace: string, hooks: readonly Hook[], by: string): Guard {
  const isOpen = hooks.some(({ name, failsOpen }) => name === by && failsOpen);
  const opens = isOpen ? "; it fails open while the functions do not answer" : "";
  return { reason: "Guarded", message: `${by} has answered a probe for evictions in ${namespace}${opens}`, remedy: "" };
}

function unseen(namespace: string, { hooks = [], unread }: Registered, why: string): Guard {
  const who = hooks.length > 0 ? listNames(hooks) : `an eviction webhook (${unread.join("; ")})`;
  return {
    reason: "NotSeen",
    message: `${who} was not seen to answer for evictions in ${namespace}: ${why}`,
    remedy: how("as a user who may list webhook configurations and create pods/eviction", "zonewise doctor"),
  };
}

const unasked = (message: string, remedy = APPLY): Guard => ({ reason: "NoWebhook", message, remedy });

function allowed(namespace: string, hooks: readonly Hook[]): Guard {
  const [first] = hooks;
  const what = `a dry-run eviction in ${namespace} was allowed without a check, and so is every other`;
  if (!first) return unasked(`${what}: no webhook sends them to the disruption budgets`);
  const why = "its selectors or matchConditions leave it out, or it fails open and does not answer";
  const look = `kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations --field-selector metadata.name=${first.configuration} -o yaml`;
  return unasked(
    `${listNames(hooks)} did not judge it: ${why}; ${what}`,
    either(APPLY, how("see what it selects", look)),
  );
}

function down(namespace: string, hooks: readonly Hook[], { by, why }: Extract<Probe, { result: "failed" }>): Guard {
  return {
    reason: "WebhookDown",
    message: `${by} cannot be called, ${why}; it fails closed: every eviction in ${namespace} is refused`,
    remedy: cureCall(why, hooks.find(({ name }) => name === by)?.service ?? `${namespace}/${OURS}`),
  };
}

/** The name of our webhooks' Service, the same as the original's. */
const OURS = "rollout-operator";

function cureCall(why: string, service: string): string {
  const [home = "", name = ""] = service.split("/");
  const look = kubectl({ namespace: home }, "get deployments,pods,endpointslices");
  if (/x509|caBundle|certificate/.test(why))
    return how(
      "apply the webhooks again; the reconciler gives them the CA (docs/operate/certificates.md, In trouble)",
      "kubectl apply -k infra/manifests/complete",
    );
  if (name !== OURS) return how(`see what serves ${name}, and remove the configuration if nothing should`, look);
  return either(
    how("see why no pod of the functions is ready", look),
    how(
      "if they were scaled to 0, start them",
      kubectl({ namespace: home }, "scale deployment zonewise-functions --replicas=2"),
    ),
  );
}
