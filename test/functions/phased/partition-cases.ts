/**
 * Writes to a StatefulSet of a PhasedRollout, and what admission leaves of them: one table for the policy and for the
 * webhook (§16.9).
 */
import assert from "node:assert/strict";
import { HELD } from "../../../reconciler/phased/target.ts";
import type { Client } from "../../cluster/conformance/client.ts";

const MERGE = "application/merge-patch+json";

interface Before {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly spec?: object;
}

interface PartitionCase {
  readonly name: string;
  readonly before: Before;
  /** A merge patch. */
  readonly write: object;
  readonly by?: string;
  /** 0 if it has none. */
  readonly partition: number;
  readonly claim: string | undefined;
  /** A partition below the written one was asked for. */
  readonly isWarned?: boolean;
}

const template = (image: string): object => ({
  metadata: { labels: { app: "db" } },
  spec: { containers: [{ name: "c", image }] },
});

const CLAIM = "sts.plus/phasedRollout";
const ORIGINAL = "sts.plus/original-partition";
const ANNOTATIONS = { [CLAIM]: "guard", [ORIGINAL]: "1", mine: "1" };
const at = (partition: number | null): object => ({
  updateStrategy: { rollingUpdate: partition === null ? null : { partition } },
});

/** Two of three pods are kept: the rollout has released one. */
const ROLLING: Before = { annotations: ANNOTATIONS, spec: at(2) };
const OF_NOBODY: Before = { annotations: { mine: "1" }, spec: at(2) };
const ON_DELETE: Before = { annotations: ANNOTATIONS, spec: { updateStrategy: { type: "OnDelete" } } };
const FROM_2: Before = { annotations: ANNOTATIONS, spec: { ...at(2), ordinals: { start: 2 } } };
/** It has released none. */
const UNRELEASED: Before = { annotations: ANNOTATIONS, spec: at(HELD) };
const RELEASED: Before = { annotations: ANNOTATIONS, spec: at(0) };
const IDLE: Before = { annotations: ANNOTATIONS, spec: at(3) };
const NEW = { template: template("x:2") };
const DROPPED = { annotations: { [CLAIM]: null, [ORIGINAL]: null } };
const RECONCILER = "zonewise-reconciler";

const kept = { before: ROLLING, partition: 2, claim: "guard", isWarned: true };
const left = { before: ROLLING, claim: "guard" };
const raised = { before: ROLLING, partition: HELD, claim: "guard" };

export const PARTITION_CASES: readonly PartitionCase[] = [
  { name: "partition 0", ...kept, write: { spec: at(0) } },
  { name: "a partition lower by one", ...kept, write: { spec: at(1) } },
  { name: "no partition", ...kept, write: { spec: at(null) } },
  {
    name: "no partition, and no claim, as a replacement by a manifest",
    ...kept,
    write: { metadata: DROPPED, spec: at(null) },
  },
  { name: "no annotations at all, and partition 0", ...kept, write: { metadata: { annotations: null }, spec: at(0) } },
  {
    name: "another claim, and partition 0",
    ...kept,
    write: { metadata: { annotations: { [CLAIM]: "mine", [ORIGINAL]: "0" } }, spec: at(0) },
  },
  { name: "partition 0 and more replicas", ...kept, partition: HELD, write: { spec: { replicas: 5, ...at(0) } } },
  { name: "partition 0 and fewer replicas than the partition", ...kept, write: { spec: { replicas: 1, ...at(0) } } },
  {
    name: "partition 0 before any pod is released",
    ...kept,
    before: UNRELEASED,
    partition: HELD,
    write: { spec: at(0) },
  },
  { name: "more replicas, whose pods would be released", ...raised, write: { spec: { replicas: 5 } } },
  { name: "more replicas while nothing rolls", ...raised, before: IDLE, write: { spec: { replicas: 4 } } },
  {
    name: "more replicas and a higher partition that does not keep them",
    ...raised,
    write: { spec: { replicas: 5, ...at(4) } },
  },
  {
    name: "more replicas after the last pod was released",
    ...left,
    before: RELEASED,
    partition: 0,
    write: { spec: { replicas: 5 } },
  },
  {
    name: "more replicas that are kept",
    ...left,
    before: UNRELEASED,
    partition: HELD,
    write: { spec: { replicas: 5 } },
  },
  { name: "partition 0 by another tool", ...kept, write: { spec: at(0) }, by: "helm" },
  { name: "another template", ...raised, write: { spec: NEW } },
  { name: "another template and more replicas", ...raised, write: { spec: { ...NEW, replicas: 5 } } },
  { name: "another template and partition 0", ...raised, write: { spec: { ...NEW, ...at(0) } }, isWarned: true },
  { name: "another template without the claim", ...raised, write: { metadata: DROPPED, spec: NEW } },
  { name: "another template and a high partition", ...raised, write: { spec: { ...NEW, ...at(7) } } },
  {
    name: "back from OnDelete",
    ...raised,
    before: ON_DELETE,
    write: { spec: { updateStrategy: { type: "RollingUpdate" } } },
  },
  { name: "ordinals that begin lower", ...raised, before: FROM_2, write: { spec: { ordinals: { start: 0 } } } },
  { name: "no ordinals any more", ...raised, before: FROM_2, write: { spec: { ordinals: null } } },
  { name: "a higher partition", ...left, write: { spec: at(3) }, partition: 3 },
  {
    name: "the same partition",
    ...left,
    write: { metadata: { annotations: { mine: "2" } }, spec: at(2) },
    partition: 2,
  },
  { name: "fewer replicas", ...left, write: { spec: { replicas: 1 } }, partition: 2 },
  {
    name: "OnDelete",
    ...left,
    write: { spec: { updateStrategy: { type: "OnDelete", rollingUpdate: null } } },
    partition: 0,
  },
  { name: "another template under OnDelete", ...left, before: ON_DELETE, write: { spec: NEW }, partition: 0 },
  { name: "no claim", before: ROLLING, write: { metadata: DROPPED }, partition: 2, claim: undefined },
  {
    name: "partition 0 after the claim was removed",
    before: OF_NOBODY,
    write: { spec: at(0) },
    partition: 0,
    claim: undefined,
  },
  {
    name: "another template of a StatefulSet of nobody",
    before: OF_NOBODY,
    write: { spec: NEW },
    partition: 2,
    claim: undefined,
  },
  { name: "the reconciler's release of a pod", ...left, write: { spec: at(1) }, by: RECONCILER, partition: 1 },
  {
    name: "the reconciler's release of the StatefulSet",
    before: ROLLING,
    write: { metadata: DROPPED, spec: at(0) },
    by: RECONCILER,
    partition: 0,
    claim: undefined,
  },
];

const SITUATIONS = [ROLLING, OF_NOBODY, ON_DELETE, FROM_2, UNRELEASED, RELEASED, IDLE];

interface Stored {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: { readonly updateStrategy: { readonly rollingUpdate?: { readonly partition?: number } } };
}

interface Outcome {
  readonly stored: Stored;
  readonly warning: string;
}

/** Makes the StatefulSet of the situation if it is not there, and asks what the write would make of it. */
export async function write(
  { before, write: body, by }: PartitionCase,
  client: Client,
  namespace: string,
): Promise<Outcome> {
  const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const name = `db-${SITUATIONS.indexOf(before)}`;
  const spec = {
    replicas: 3,
    serviceName: "db",
    selector: { matchLabels: { app: "db" } },
    template: template("x:1"),
    ...before.spec,
  };
  const set = { apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name, annotations: before.annotations }, spec };
  const made = await client.call({ method: "POST", path, body: set });
  assert.ok([201, 409].includes(made.status), JSON.stringify(made.body));
  const query = by ? `&fieldManager=${by}` : "";
  const answer = await client.call({ method: "PATCH", path: `${path}/${name}?dryRun=All${query}`, type: MERGE, body });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  return { stored: answer.body as Stored, warning: String(answer.headers["warning"] ?? "") };
}

/** Fails unless the write became what the case says. A policy cannot warn. */
export function assertOutcome(
  { name, partition, claim, isWarned = false }: PartitionCase,
  outcome: Outcome,
  canWarn = true,
): void {
  const { metadata, spec } = outcome.stored;
  const { annotations = {} } = metadata;
  assert.deepEqual(
    [spec.updateStrategy.rollingUpdate?.partition ?? 0, annotations[CLAIM], annotations[ORIGINAL]],
    [partition, claim, claim === undefined ? undefined : "1"],
    name,
  );
  assert.equal(outcome.warning.includes("PhasedRollout guard releases its pods"), canWarn && isWarned, name);
}
