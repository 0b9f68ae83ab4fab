/** Reads scalable objects from an admission review (§3.1-§3.5). */
import * as z from "zod";
import { LABELS } from "../model/annotations.ts";

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
export interface Unscalable {
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
