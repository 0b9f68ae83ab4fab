/**
 * Webhooks of others, which judge downscales after ours, or change them: slowly, and without a reason that we know.
 */
import { dig, type Draft } from "../emulator/objects.ts";
import { NAMESPACE } from "./names.ts";

const PATH = "/others/";
/** The API server waits so long for them. */
const TIMEOUT_SECONDS = 30;

export interface OfOthers {
  readonly zone: string;
  /** Milliseconds until they answer. */
  readonly ms: number;
  /** The replicas that the zone gets instead; undefined to refuse each downscale of it. */
  readonly replicas?: number | undefined;
}

const REPLICAS = "/spec/replicas";

export const OTHERS = "others";

const SHRINKS = {
  name: "shrinks",
  expression: "(has(object.spec.replicas) ? object.spec.replicas : 0) < oldObject.spec.replicas",
};

/** The kind of configuration that they need, and the configuration. */
export function configurationOfOthers({ zone, ms, replicas }: OfOthers): {
  readonly plural: string;
  readonly object: Draft;
} {
  const [kind, plural] =
    replicas === undefined
      ? ["ValidatingWebhookConfiguration", "validatingwebhookconfigurations"]
      : ["MutatingWebhookConfiguration", "mutatingwebhookconfigurations"];
  const path = `${PATH}${ms}${replicas === undefined ? "" : `/${replicas}`}`;
  const webhook = {
    name: "others.example.com",
    admissionReviewVersions: ["v1"],
    clientConfig: { service: { name: "rollout-operator", namespace: NAMESPACE, path, port: 443 } },
    rules: [
      {
        operations: ["UPDATE"],
        apiGroups: ["apps"],
        apiVersions: ["v1"],
        resources: ["statefulsets", "statefulsets/scale"],
      },
    ],
    matchConditions: [{ name: "is-theirs", expression: `request.name == '${zone}'` }, SHRINKS],
    sideEffects: "None",
    timeoutSeconds: TIMEOUT_SECONDS,
  };
  // After ours, by the order of names.
  const metadata = { name: `zz-${OTHERS}` };
  return { plural, object: { apiVersion: "admissionregistration.k8s.io/v1", kind, metadata, webhooks: [webhook] } };
}

/** What they answer to a review, and after how many milliseconds; undefined for a webhook of ours. */
export function answerOfOthers(
  { pathname }: URL,
  data: string,
): { readonly ms: number; readonly body: string } | undefined {
  if (!pathname.startsWith(PATH)) return undefined;
  const [ms = "0", value] = pathname.slice(PATH.length).split("/");
  const uid = dig(JSON.parse(data), "request", "uid");
  const patch = [{ op: "replace", path: REPLICAS, value: Number(value) }];
  const response =
    value === undefined
      ? { uid, allowed: false, status: { code: 403, message: "not now" } }
      : { uid, allowed: true, patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") };
  return {
    ms: Number(ms),
    body: JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response }),
  };
}
