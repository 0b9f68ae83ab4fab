/** The first steps of both downscale webhooks: is the request a downscale (§3.1-§3.5, §4.1)? */
import * as z from "zod";
import { LABELS } from "../../reconciler/model/annotations.ts";
import type { AdmissionRequest, Answer } from "../http/webhook.ts";

export interface Downscale {
  readonly old: Scalable;
  readonly from: number;
  readonly to: number;
}

/**
 * The requested downscale, or the answer to a request that is no downscale. `otherKinds` selects the message for
 * objects of other kinds.
 */
export function findDownscale(request: AdmissionRequest, otherKinds: Unscalable["cause"] = "kind"): Downscale | Answer {
  const old = readScalable(request.oldObject);
  if ("problem" in old) return allowUnreadable("old", old, otherKinds);
  const next = readScalable(request.object);
  if ("problem" in next) return allowUnreadable("new", next, otherKinds);
  const [from, to] = [old.replicas, next.replicas];
  if ((from === null) !== (to === null))
    return allowWithWarning("ReplicasUnknown", "old/new replicas is nil, allowing the change");
  if (from === null || to === null || to >= from) return { allowed: true, reason: "NoDownscale" };
  return { old, from, to };
}

/** The downscale webhooks fail open if they cannot decide. */
export function allowWithWarning(reason: string, warning: string): Answer {
  return { allowed: true, reason, warnings: [warning] };
}

export interface Candidate {
  readonly request: AdmissionRequest;
  readonly downscale: Downscale;
}

/** The answer that refuses the downscale; `explanation` ends the sentence. */
export function denyDownscale(candidate: Candidate, reason: string, explanation: string): Answer {
  const message = `${describeDownscale(candidate)} is not allowed because ${explanation}`;
  return { allowed: false, reason, message, log: replicaFields(candidate.downscale) };
}

/** The answer of both webhooks for an object with the label (§3.7, §4.4): neither needs the other. */
export function denyByLabel(candidate: Candidate): Answer {
  return denyDownscale(candidate, "NoDownscaleLabel", `it has the label '${LABELS.noDownscale}=true'`);
}

/** `downscale of statefulsets/web in shop from 3 to 2 replicas`: the beginning of every message about the downscale. */
export function describeDownscale({ request, downscale: { from, to } }: Candidate): string {
  const { resource, namespace = "", name = "" } = request;
  return `downscale of ${resource.resource}/${name} in ${namespace} from ${from} to ${to} replicas`;
}

export function replicaFields({ from, to }: Downscale): Readonly<Record<string, number>> {
  return { "object.old_replicas": from, "object.new_replicas": to };
}

function allowUnreadable(
  which: "old" | "new",
  { cause, problem }: Unscalable,
  otherKinds: Unscalable["cause"],
): Answer {
  const [verb, noun] = cause === "kind" && otherKinds === "kind" ? ["get", "replicas"] : ["decode", "object"];
  return allowWithWarning("Unreadable", `can't ${verb} ${which} ${noun}, allowing the change, err: ${problem}`);
}

// The objects of a request, before and after (§3.1-§3.5).

export interface Scalable {
  readonly kind: "StatefulSet" | "Deployment" | "ReplicaSet" | "Scale";
  /** Null if the object does not set them. */
  readonly replicas: number | null;
  /** `spec.ordinals.start`; 0 unless set. */
  readonly firstOrdinal: number;
  /** Those that the webhooks read. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Why an object is not scalable: it cannot be decoded, or its kind is not supported. */
interface Unscalable {
  readonly cause: "decode" | "kind";
  readonly problem: string;
}

const KINDS: Readonly<Record<string, Scalable["kind"]>> = {
  "apps/v1 StatefulSet": "StatefulSet",
  "apps/v1 Deployment": "Deployment",
  "apps/v1 ReplicaSet": "ReplicaSet",
  "autoscaling/v1 Scale": "Scale",
};
const VERSIONS: ReadonlySet<string> = new Set(["apps/v1", "autoscaling/v1"]);

const TYPE = z.object({ apiVersion: z.string(), kind: z.string() });
const LABEL = z.string().exactOptional();
/** Only the labels that the webhooks read: an object may have more than a megabyte of others. */
const READ_LABELS = z.object({ [LABELS.noDownscale]: LABEL, [LABELS.prepareDownscale]: LABEL });
const OBJECT = z.object({
  metadata: z.object({ labels: READ_LABELS.nullish() }).nullish(),
  spec: z
    .object({ replicas: z.int32().nullish(), ordinals: z.object({ start: z.int32().nullish() }).nullish() })
    .nullish(),
});

export function readScalable(object: unknown): Scalable | Unscalable {
  const type = TYPE.safeParse(object);
  if (!type.success) return { cause: "decode", problem: "it has no apiVersion and kind" };
  const { apiVersion, kind } = type.data;
  const supported = KINDS[`${apiVersion} ${kind}`];
  if (supported === undefined) return unsupportedKind(apiVersion.slice(0, 100), kind.slice(0, 100));
  const read = OBJECT.safeParse(object);
  if (!read.success) return { cause: "decode", problem: describe(read.error) };
  return { kind: supported, ...readPods(supported, read.data.spec ?? {}), labels: read.data.metadata?.labels ?? {} };
}

function readPods(kind: Scalable["kind"], { replicas, ordinals }: NonNullable<z.infer<typeof OBJECT>["spec"]>) {
  return { replicas: replicas ?? (kind === "Scale" ? 0 : null), firstOrdinal: ordinals?.start ?? 0 };
}

function describe({ issues: [first] }: z.ZodError): string {
  return first ? `${first.path.join(".")}: ${first.message}` : "";
}

function unsupportedKind(apiVersion: string, kind: string): Unscalable {
  return VERSIONS.has(apiVersion)
    ? { cause: "kind", problem: `unsupported type ${apiVersion}, Kind=${kind}` }
    : { cause: "decode", problem: `no kind "${kind}" is registered for version "${apiVersion}"` };
}
