/**
 * Removes secrets from objects before they leave the cluster, in two steps. A table lists the fields of each kind that
 * are kept, because decisions are made from them. All other fields are dropped, so that a new field with secrets is
 * dropped as well. Then every remaining text is searched for credentials, and for the dropped values that look like
 * credentials.
 */
import { fieldsOf, isFields } from "../../infra/json.ts";

/** `true` keeps a value whole; a list, each element by its shape; `"*"`, the keys that have no shape of their own. */
type Shape = true | readonly [Shape] | { readonly [field: string]: Shape };

const ANNOTATIONS = /^(?:grafana\.com\/|rollout-|zonewise\/|zonewise\.dev\/|sts\.plus\/)/;
const CONDITIONS = [{ type: true, status: true, reason: true, lastTransitionTime: true }] as const;
const OWNER = { apiVersion: true, kind: true, name: true, uid: true, controller: true } as const;
const METADATA = {
  name: true,
  namespace: true,
  uid: true,
  resourceVersion: true,
  generation: true,
  creationTimestamp: true,
  deletionTimestamp: true,
  finalizers: true,
  labels: true,
  annotations: true,
  ownerReferences: [OWNER],
} as const satisfies Shape;
const CONTAINERS = [{ name: true, image: true, resources: true }] as const satisfies Shape;
const TEMPLATE = {
  metadata: { labels: true, annotations: true },
  spec: {
    containers: CONTAINERS,
    initContainers: CONTAINERS,
    nodeSelector: true,
    affinity: true,
    tolerations: true,
    topologySpreadConstraints: true,
    terminationGracePeriodSeconds: true,
    readinessGates: true,
  },
} as const satisfies Shape;
/** No messages: a container may write anything into them. */
const STATE = { waiting: { reason: true }, running: true, terminated: { reason: true, exitCode: true } } as const;
const CONTAINER_STATUSES = [
  { name: true, ready: true, restartCount: true, state: STATE, lastState: STATE },
] as const satisfies Shape;
const QUERY = { expr: true, url: true, insecureSkipVerify: true, secretRef: true } as const;
const CHECK = {
  name: true,
  query: QUERY,
  successWhen: true,
  initialDelaySeconds: true,
  periodSeconds: true,
  successThreshold: true,
  failureThreshold: true,
  baseline: { expr: true, at: true, maxRatio: true, minRatio: true, maxDifference: true },
} as const satisfies Shape;

/** Kinds that may be in a dump. They include neither Secrets nor ConfigMaps. */
export const KEPT = {
  StatefulSet: {
    spec: {
      replicas: true,
      serviceName: true,
      selector: true,
      podManagementPolicy: true,
      updateStrategy: true,
      minReadySeconds: true,
      ordinals: true,
      template: TEMPLATE,
    },
    status: {
      observedGeneration: true,
      replicas: true,
      readyReplicas: true,
      availableReplicas: true,
      currentReplicas: true,
      updatedReplicas: true,
      currentRevision: true,
      updateRevision: true,
    },
  },
  Pod: {
    spec: { nodeName: true },
    status: {
      phase: true,
      startTime: true,
      conditions: CONDITIONS,
      containerStatuses: CONTAINER_STATUSES,
      initContainerStatuses: CONTAINER_STATUSES,
    },
  },
  ControllerRevision: { revision: true, data: { spec: { template: TEMPLATE } } },
  RolloutGroup: { spec: true, status: true },
  RolloutGate: {
    spec: { group: true, when: true, mode: true, onError: true, soakSeconds: true, checks: [CHECK] },
    status: true,
  },
  PhasedRollout: {
    spec: {
      targetRef: true,
      skipCheck: true,
      standardRollingUpdate: true,
      progressDeadlineSeconds: true,
      finalCheck: true,
      checkpoint: true,
      onDelete: true,
      check: CHECK,
    },
    status: true,
  },
  ZoneAwarePodDisruptionBudget: { spec: true, status: true },
  PodDisruptionBudget: {
    spec: { selector: true, minAvailable: true, maxUnavailable: true },
    status: { currentHealthy: true, desiredHealthy: true, disruptionsAllowed: true, expectedPods: true },
  },
  Lease: { spec: true },
  Event: {
    type: true,
    reason: true,
    message: true,
    count: true,
    firstTimestamp: true,
    lastTimestamp: true,
    eventTime: true,
    reportingComponent: true,
    involvedObject: { kind: true, namespace: true, name: true, uid: true },
  },
} as const satisfies Readonly<Record<string, { readonly [field: string]: Shape }>>;

export type KeptKind = keyof typeof KEPT;

const isKept = (kind: string): kind is KeptKind => Object.hasOwn(KEPT, kind);

const textAt = (object: unknown, field: string): string | undefined => {
  const value = fieldsOf(object)[field];
  return typeof value === "string" ? value : undefined;
};

/** The object with the kept fields only; undefined for a kind that is not kept. */
export function prune(object: unknown): object | undefined {
  const kind = textAt(object, "kind") ?? "";
  if (!isKept(kind)) return undefined;
  const shape = { apiVersion: true, kind: true, metadata: METADATA, ...KEPT[kind] } as const;
  const { metadata, ...kept } = fieldsOf(pick(object, shape));
  return { ...kept, metadata: onlyOwnAnnotations(metadata), ...ownTemplate(kept) };
}

function pick(value: unknown, shape: Shape): unknown {
  if (shape === true) return value;
  if (Array.isArray(shape)) {
    const [each] = shape as readonly [Shape];
    return Array.isArray(value) ? value.map((one) => pick(one, each)) : undefined;
  }
  if (!isFields(value)) return undefined;
  const fields = Object.entries(shape as Readonly<Record<string, Shape>>).map(
    ([field, own]) => [field, pick(value[field], own)] as const,
  );
  return Object.fromEntries(fields.filter(([, kept]) => kept !== undefined));
}

/** Keeps only our own annotations. Others may contain anything: `last-applied-configuration` has the whole object. */
function onlyOwnAnnotations(metadata: unknown): unknown {
  const { annotations, ...rest } = fieldsOf(metadata);
  const own = Object.entries(fieldsOf(annotations)).filter(([name]) => ANNOTATIONS.test(name));
  return { ...rest, ...(own.length > 0 && { annotations: Object.fromEntries(own) }) };
}

/** The templates of a StatefulSet and of its revisions have annotations, too. */
function ownTemplate({ spec, data }: Readonly<Record<string, unknown>>): object {
  const clean = (holder: unknown): unknown => {
    const { template, ...rest } = fieldsOf(holder);
    if (!isFields(template)) return holder;
    return { ...rest, template: { ...template, metadata: onlyOwnAnnotations(template["metadata"]) } };
  };
  return {
    ...(spec !== undefined && { spec: clean(spec) }),
    ...(data !== undefined && { data: { spec: clean(fieldsOf(data)["spec"]) } }),
  };
}

export const REDACTED = "REDACTED";

const SENSITIVE =
  /pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential|auth|cert|dsn|connection/i;
/** The length is bounded, because texts may be long and hostile. */
const WORDS =
  "(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credentials?|auth(?:orization)?)[\\w-]{0,40}";
const FLAG = `--?[\\w.-]{0,60}${WORDS}`;
/** Patterns of credentials, and the text that replaces each. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [^-]+-----[^]*?(?:-----END [^-]+-----|$)/g, REDACTED],
  // The user's part of a URL; a password may have an @ itself.
  [/\b([a-z][a-z\d+.-]{0,20}:\/\/)[^\s/"'?#]*@/gi, `$1${REDACTED}@`],
  [/(\bhttps?:\/\/[^\s"'?#]{0,400})[?#][^\s"']+/gi, `$1?${REDACTED}`],
  [/\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${REDACTED}`],
  [/\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g, REDACTED],
  [/\b(?:AKIA|ASIA)[A-Z\d]{16}\b|\bgh[pousr]_\w{20,}|\bglpat-[\w-]{16,}|\bxox[a-z]-[\w-]{10,}/g, REDACTED],
  [new RegExp(`(${WORDS}["']?\\s*(?:=|:)\\s*["']?)(?!${REDACTED})[^\\s"',;&})]+`, "gi"), `$1${REDACTED}`],
  [new RegExp(`((?<![^\\s"'])${FLAG}\\s+)(?!${REDACTED})[^\\s"',;]+`, "gi"), `$1${REDACTED}`],
];
/** A long word of letters and digits in a sentence is not a Kubernetes name. */
const OPAQUE = /(?<![\w:/.-])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{32,}={0,2}(?![\w-])/g;

/** Shorter values are parts of too many words. */
const MIN_SECRET = 4;

/**
 * Values of the objects as read that look like credentials; the kept text is searched for them. They are found by the
 * names of environment variables and annotations, by the flags of arguments, and in the user part of URLs.
 */
export function findSecrets(objects: readonly unknown[]): ReadonlySet<string> {
  const found = objects.flatMap(secretsIn).filter((one): one is string => typeof one === "string");
  return new Set(found.map((one) => one.trim()).filter(({ length }) => length >= MIN_SECRET));
}

function secretsIn(value: unknown): readonly unknown[] {
  if (typeof value === "string") return secretsInText(value);
  if (Array.isArray(value)) return [...flaggedIn(value), ...value.flatMap(secretsIn)];
  if (!isFields(value)) return [];
  const { name, value: own, annotations } = value;
  const noted = Object.entries(fieldsOf(annotations)).filter(([annotation]) => SENSITIVE.test(annotation));
  return [
    ...(typeof name === "string" && SENSITIVE.test(name) ? [own] : []),
    ...noted.map(([, text]) => text),
    ...Object.values(value).flatMap(secretsIn),
  ];
}

/** The password of a URL, or its user if there is no password; the value of a flag. */
function secretsInText(text: string): readonly unknown[] {
  const urls = [...text.matchAll(/:\/\/([^\s/:"'?#]*)(?::([^\s/"'?#]*))?@/g)];
  const flags = [...text.matchAll(new RegExp(`${FLAG}[=\\s]+([^\\s"',;]+)`, "gi"))];
  return [...urls.map(([, user, password]) => password ?? user), ...flags.map(([, flagged]) => flagged)];
}

/** The arguments that follow a sensitive flag in a list. */
const flaggedIn = (list: readonly unknown[]): readonly unknown[] =>
  list.filter((_, index) => {
    const before = list[index - 1];
    return typeof before === "string" && /^--?[\w.-]+$/.test(before) && SENSITIVE.test(before);
  });

export interface Scrubbed {
  readonly value: unknown;
  /** The number of changed texts. */
  readonly changed: number;
}

/**
 * The value with every text scrubbed; keys of fields stay. A secret that is part of one of `names` is public, and
 * stays.
 */
export function scrub(value: unknown, secrets: ReadonlySet<string>, names: ReadonlySet<string>): Scrubbed {
  let changed = 0;
  // The longest first: one secret may be part of another.
  const isPublic = (secret: string): boolean => [...names].some((name) => name.includes(secret));
  const known = [...secrets].filter((one) => !isPublic(one)).toSorted((a, b) => b.length - a.length);
  const clean = (text: string): string => {
    let result = text;
    for (const one of known) result = result.replaceAll(one, REDACTED);
    for (const [pattern, kept] of PATTERNS) result = result.replaceAll(pattern, kept);
    if (/\s/.test(result)) result = result.replaceAll(OPAQUE, REDACTED);
    if (result !== text) changed++;
    return result;
  };
  const visit = (part: unknown): unknown => {
    if (typeof part === "string") return names.has(part) ? part : clean(part);
    if (Array.isArray(part)) return part.map(visit);
    return isFields(part) ? Object.fromEntries(Object.entries(part).map(([key, own]) => [key, visit(own)])) : part;
  };
  return { value: visit(value), changed };
}

/** Names and namespaces of objects. */
export const namesOf = (objects: readonly unknown[]): ReadonlySet<string> =>
  new Set(
    objects.flatMap((object) =>
      ["name", "namespace"].flatMap((field) => textAt(fieldsOf(object)["metadata"], field) ?? []),
    ),
  );
