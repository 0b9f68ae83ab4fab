/**
 * The objects of a file that `zonewise dump` has written, as the simulated cluster takes them. What is not in the file
 * is made up: nodes, claims, containers that become ready; what it cannot play is left out, and told.
 */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import * as z from "zod";
import { readZone } from "../../reconciler/model/zone.ts";
import { identityOf } from "../../reconciler/gates/rollout.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { revisionOf } from "../emulator/controllers/statefulset/revisions.ts";
import { dig, type Draft, type Fields, fieldsOf, isTrue, listOf, textOf } from "../emulator/objects.ts";
import { GATES, PHASED_ROLLOUTS } from "./checks/objects.ts";
import { PROMETHEUS_URL } from "./checks/prometheus.ts";
import { BUDGETS, NAMESPACE, ROLLOUT_GROUPS } from "./names.ts";
import type { Loaded } from "./world.ts";

const DumpObject = z.looseObject({
  kind: z.string(),
  apiVersion: z.string(),
  metadata: z.looseObject({ name: z.string(), uid: z.string().optional() }),
});
const Dump = z.looseObject({
  kind: z.literal("ZonewiseDump"),
  version: z.literal(1),
  takenAt: z.iso.datetime(),
  group: z.string(),
  objects: z.array(DumpObject),
});
type DumpObject = z.infer<typeof DumpObject>;
export type Dump = z.infer<typeof Dump>;

/** Throws an error that a person understands, for a file that is no dump or of another version. */
export function readDump(path: string): Dump {
  const bytes = readFileSync(path);
  const text = bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes).toString() : bytes.toString();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Error(`${path} is no JSON`);
  }
  const read = Dump.safeParse(json);
  if (!read.success) throw new Error(`${path} is no dump of this version: ${z.prettifyError(read.error)}`);
  return read.data;
}

export interface LoadedDump extends Loaded {
  readonly group: string;
  /** Milliseconds since the epoch. */
  readonly takenAt: number;
  /** What is played otherwise than it was. */
  readonly notes: readonly string[];
}

/** An annotation that keeps templates apart that differ only in what the dump does not have. */
const REVISION = "sim/revision";
const READY_MS = 2000;
const MIRRORS = /^grafana\.com\/rollout-(?:mirror-replicas|prepare-delayed|delayed)/;

export function loadDump({ objects, group, takenAt }: Dump): LoadedDump {
  const ofKind = (kind: string): readonly DumpObject[] => objects.filter((object) => object.kind === kind);
  const sets = ofKind("StatefulSet");
  if (sets.length === 0) throw new Error(`the dump has no StatefulSet of ${group}`);
  const notes: string[] = [];
  const revisions = new Map(sets.flatMap((set) => revisionsOf(set, ofKind("ControllerRevision"))));
  const rename = createRename(revisions);
  const loadedSets = sets.map((set) => loadSet(set, { revisions, rename, notes }));
  const identities = [identityOf(sets.map(zoneOf)), identityOf(loadedSets.map(zoneOf))] as const;
  const checks: Record<string, Loaded["checks"][string]> = {};
  const asked = (object: DumpObject, check: unknown): unknown => {
    const expr = textOf(dig(check, "query", "expr")) ?? "";
    const successWhen = dig(check, "successWhen") === "Data" ? "Data" : "NoData";
    checks[/^\w*/.exec(expr)?.[0] ?? ""] = { successWhen, last: "good" };
    notes.push(`${object.kind} ${object.metadata.name}: its checks pass from now on`);
    return { ...fieldsOf(check), query: { expr, url: PROMETHEUS_URL } };
  };
  const gates = ofKind("RolloutGate").map((gate): Draft => {
    const spec = fieldsOf(gate["spec"]);
    const status = JSON.stringify(rename(gate["status"] ?? {})).replaceAll(...identities);
    return place(gate, {
      spec: { ...spec, checks: listOf(spec["checks"]).map((check) => asked(gate, check)) },
      status: seen(JSON.parse(status) as Fields, gate),
    });
  });
  const phased = ofKind("PhasedRollout").map((rollout): Draft => {
    const spec = fieldsOf(rollout["spec"]);
    const status = seen(fieldsOf(rename(rollout["status"] ?? {})), rollout);
    return place(rollout, { spec: { ...spec, check: asked(rollout, spec["check"]) }, status });
  });
  return {
    group,
    takenAt: Date.parse(takenAt),
    notes,
    checks,
    objects: [
      ...[...revisions.values()].map((revision) => ["controllerrevisions.apps", revision.object] as const),
      ...ofKind("Pod").map((pod) => ["pods", loadPod(pod, { revisions, rename })] as const),
      ...loadedSets.map((set) => ["statefulsets.apps", set] as const),
      ...ofKind("ZoneAwarePodDisruptionBudget").map(
        (budget) => [BUDGETS, place(budget, { spec: budget["spec"] })] as const,
      ),
      ...gates.map((gate) => [GATES, gate] as const),
      ...phased.map((rollout) => [PHASED_ROLLOUTS, rollout] as const),
      ...ofKind("RolloutGroup").map((one) => [ROLLOUT_GROUPS, place(one, { spec: one["spec"] })] as const),
    ],
  };
}

const zoneOf = (set: unknown) => readZone(set as StatefulSet);

/** The object with what is given, in the world's namespace, without what the world gives it. */
function place(object: DumpObject, parts: Fields): Draft {
  const { resourceVersion: _, generation: __, creationTimestamp: ___, finalizers: ____, ...metadata } = object.metadata;
  const { apiVersion, kind } = object;
  return { apiVersion, kind, metadata: { ...metadata, namespace: NAMESPACE }, ...parts } as Draft;
}

/** A status that is as old as it was: the world's generations begin at 1. */
const seen = (status: Fields, { metadata }: DumpObject): Fields =>
  status["observedGeneration"] === undefined
    ? status
    : { ...status, observedGeneration: status["observedGeneration"] === metadata["generation"] ? 1 : 0 };

interface Revision {
  readonly name: string;
  readonly template: Fields;
  readonly object: Draft;
}

/** By their names in the dump. One that its pods have and the file has not is like the set's own template. */
function revisionsOf(set: DumpObject, all: readonly DumpObject[]): readonly (readonly [string, Revision])[] {
  const own = all.filter(({ metadata }) =>
    listOf(metadata["ownerReferences"]).some((owner) => dig(owner, "uid") === set.metadata.uid),
  );
  const update = textOf(dig(set, "status", "updateRevision")) ?? "";
  const templates = new Map([
    [textOf(dig(set, "status", "currentRevision")) ?? "", dig(set, "spec", "template")],
    ...own.map((revision) => [revision.metadata.name, dig(revision, "data", "spec", "template")] as const),
    [update, dig(set, "spec", "template")],
  ]);
  return [...templates].map(([name, template], index) => {
    const played = templateOf(template, name);
    const { data, hash } = revisionOf(played);
    const number = own.find(({ metadata }) => metadata.name === name)?.["revision"] ?? index + 1;
    const object = {
      apiVersion: "apps/v1",
      kind: "ControllerRevision",
      metadata: {
        name: `${set.metadata.name}-${hash}`,
        namespace: NAMESPACE,
        labels: { ...fieldsOf(dig(played, "metadata", "labels")), "controller.kubernetes.io/hash": hash },
        ownerReferences: [ownerOf(set)],
      },
      data,
      revision: number,
    } as Draft;
    return [name, { name: object.metadata.name ?? "", template: played, object }] as const;
  });
}

const ownerOf = ({ metadata: { name, uid } }: DumpObject) => ({
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  name,
  uid,
  controller: true,
  blockOwnerDeletion: true,
});

/** A template that runs here: any node does, and its containers come up. */
function templateOf(template: unknown, revision: string): Fields {
  const containers = listOf(dig(template, "spec", "containers")).map((one) => ({
    name: textOf(dig(one, "name")) ?? "main",
    image: textOf(dig(one, "image")) ?? "app:1",
  }));
  const labels = fieldsOf(dig(template, "metadata", "labels"));
  return {
    metadata: { labels, annotations: { [REVISION]: revision, "sim/ready-after-ms": String(READY_MS) } },
    spec: { containers: containers.length > 0 ? containers : [{ name: "main", image: "app:1" }] },
  };
}

/** Puts the world's names of revisions in place of the dump's, wherever they are. */
function createRename(revisions: ReadonlyMap<string, Revision>): (value: unknown) => unknown {
  const known = [...revisions].filter(([name]) => name !== "");
  return (value) =>
    JSON.parse(
      known.reduce(
        (text, [name, revision]) => text.replaceAll(`"${name}"`, `"${revision.name}"`),
        JSON.stringify(value),
      ),
    ) as unknown;
}

interface Names {
  readonly revisions: ReadonlyMap<string, Revision>;
  readonly rename: (value: unknown) => unknown;
}

function loadSet(set: DumpObject, { revisions, rename, notes }: Names & { readonly notes: string[] }): Draft {
  const annotations = Object.entries(fieldsOf(set.metadata["annotations"]));
  const left = annotations.filter(([name]) => MIRRORS.test(name));
  if (left.length > 0) notes.push(`StatefulSet ${set.metadata.name}: mirrors no resource here, its replicas stay`);
  const spec = fieldsOf(set["spec"]);
  const update = textOf(dig(set, "status", "updateRevision")) ?? "";
  return place(
    {
      ...set,
      metadata: { ...set.metadata, annotations: Object.fromEntries(annotations.filter((one) => !left.includes(one))) },
    },
    {
      spec: { ...spec, template: revisions.get(update)?.template ?? templateOf(spec["template"], update) },
      status: seen(fieldsOf(rename(set["status"] ?? {})), set),
    },
  );
}

/** A pod that was ready stays so; one that was not never becomes it, its successor does. */
function loadPod(pod: DumpObject, { revisions, rename }: Names): Draft {
  const hash = textOf(dig(pod, "metadata", "labels", "controller-revision-hash")) ?? "";
  const status = fieldsOf(pod["status"]);
  const waits = listOf(status["containerStatuses"]).some((one) => dig(one, "state", "waiting") !== undefined);
  const isReady = isTrue({ ...pod, status }, "Ready");
  const simulated = isReady ? { "sim/ready-after-ms": "0" } : { [waits ? "sim/crash" : "sim/ready"]: String(waits) };
  const template = revisions.get(hash)?.template ?? templateOf({}, hash);
  const metadata = {
    ...pod.metadata,
    labels: fieldsOf(rename(pod.metadata["labels"] ?? {})),
    annotations: { ...fieldsOf(pod.metadata["annotations"]), ...simulated },
  };
  return place({ ...pod, metadata }, { spec: { ...fieldsOf(template["spec"]), nodeName: "node-1" }, status });
}
