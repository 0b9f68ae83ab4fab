/**
 * Webhooks of others, which judge downscales after ours, or change them, or what is released: slowly, and without a
 * reason that we know.
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
  /** The partition that it keeps while a PhasedRollout manages it, whatever is written. */
  readonly partition?: number | undefined;
}

/** What they change, as the last part of their path names it. */
const FIELDS: Readonly<Record<string, string>> = { partition: "/spec/updateStrategy/rollingUpdate/partition" };
const REPLICAS = "/spec/replicas";

export const OTHERS = "others";

const IS_MANAGED = {
  name: "is-managed",
  expression: "has(object.metadata.annotations) && 'sts.plus/phasedRollout' in object.metadata.annotations",
};
const SHRINKS = {
  name: "shrinks",
  expression: "(has(object.spec.replicas) ? object.spec.replicas : 0) < oldObject.spec.replicas",
};

/** The kind of configuration that they need, and the configuration. */
export function configurationOfOthers({ zone, ms, replicas, partition }: OfOthers): {
  readonly plural: string;
  readonly object: Draft;
} {
  const value = partition ?? replicas;
  const [kind, plural] =
    value === undefined
      ? ["ValidatingWebhookConfiguration", "validatingwebhookconfigurations"]
      : ["MutatingWebhookConfiguration", "mutatingwebhookconfigurations"];
  const path = `${PATH}${ms}${value === undefined ? "" : `/${value}`}${partition === undefined ? "" : "/partition"}`;
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
    matchConditions: [
      { name: "is-theirs", expression: `request.name == '${zone}'` },
      partition === undefined ? SHRINKS : IS_MANAGED,
    ],
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
  const [ms = "0", value, field = ""] = pathname.slice(PATH.length).split("/");
  const uid = dig(JSON.parse(data), "request", "uid");
  const patch = [{ op: "replace", path: FIELDS[field] ?? REPLICAS, value: Number(value) }];
  const response =
    value === undefined
      ? { uid, allowed: false, status: { code: 403, message: "not now" } }
      : { uid, allowed: true, patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(patch)).toString("base64") };
  return {
    ms: Number(ms),
    body: JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response }),
  };
}
