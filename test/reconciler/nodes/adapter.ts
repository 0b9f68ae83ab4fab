/**
 * The one door to the decisions about nodes: facts in, decisions out. Whoever rewrites how they are read and decided has
 * this file to keep, and no case. What a pass makes of nodes is in words, as the nodes are; what the pods of a node say is
 * read from objects as a cluster has them.
 *
 *   "a R/S Draining late cordoned, b" is a node in whose update RebootedIntoUpdate is wanted and StagedAndPerformedUpdate
 *   reported, which is active in phase Draining since a day, with our cordon; and a node at rest that has an update.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parse } from "yaml";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { createPodReader } from "../../../reconciler/nodes/act/read-pods.ts";
import { type NodePlan, planPass } from "../../../reconciler/nodes/plan-pass.ts";
import type { UpdateNode } from "../../../reconciler/nodes/node.ts";
import { type ActiveNode, NODE_PHASES, type NodePhase, type PolicyStatus } from "../../../reconciler/nodes/policy.ts";
import type { ShadowStatus, State } from "../../../reconciler/nodes/shadow.ts";
import type { NodeReading, PolicySnapshot } from "../../../reconciler/nodes/snapshot.ts";
import { planUpkeep, type Upkeep, type UpkeepSnapshot } from "../../../reconciler/nodes/upkeep.ts";
import type { KubeObject } from "../../emulator/objects.ts";
import { requestSelector } from "../../emulator/selectors.ts";
import { at, entry, FREE, MINUTE, node, NOW, policy, shadow, snapshot } from "./fixture.ts";

const STATES: Readonly<Record<string, State>> = {
  I: "Idle",
  S: "StagedAndPerformedUpdate",
  R: "RebootedIntoUpdate",
  M: "MonitoringUpdate",
  E: "ErrorReset",
};
const letterOf = (state: string): string => Object.keys(STATES).find((letter) => STATES[letter] === state) ?? state;

interface Described {
  readonly node?: Partial<UpdateNode>;
  readonly status?: Partial<ShadowStatus>;
  readonly entry?: Partial<ActiveNode>;
  readonly reading?: Partial<NodeReading>;
}

const DAY = 24 * 60 * MINUTE;

/** What a word says. */
const WORDS: Readonly<Record<string, Described>> = {
  late: { entry: { since: at(-DAY) } },
  fresh: { entry: { since: at(0) } },
  ahead: { entry: { since: at(1000 * MINUTE) } },
  notready: { node: { ready: false } },
  cordoned: { node: { cordonedBy: "shadow-a", annotations: { "zonewise.dev/cordoned-by": "shadow-a" } } },
  cordonedearlier: { node: { cordonedBy: "earlier", annotations: { "zonewise.dev/cordoned-by": "earlier" } } },
  bycordon: { node: { unschedulable: true } },
  unmanaged: { node: { managed: false } },
  removed: { node: { removedBy: "karpenter.sh/disrupted" } },
  deleted: { node: { terminating: true } },
  replaced: { node: { uid: "a new node" } },
  newboot: { node: { bootId: "boot-2", readySince: NOW - 10 * MINUTE } },
  noboot: { entry: { bootId: "" } },
  justready: { node: { bootId: "boot-2", readySince: NOW - 59_000 } },
  rebootedagain: { status: { boot_reported_at: at(-59_000) } },
  reportedahead: { status: { boot_reported_at: at(60 * MINUTE) } },
  secondsahead: { node: { bootId: "boot-2", readySince: NOW + 59_000 } },
  hourahead: { node: { bootId: "boot-2", readySince: NOW + 60 * MINUTE } },
  announced: { status: { rebooting: { boot_id: "boot-1", at: at(-MINUTE) } } },
  updated: { status: { current_version: "1.1.0", target_version: "1.1.0" } },
  nothing: { status: { target_version: "1.0.0" } },
  lower: { status: { target_version: "0.9.0" } },
  crashed: { status: { crash_count: 1, state_transition_failure_timestamp: at(-2 * MINUTE) } },
  /** Long ago. */
  failing: { status: { crash_count: 2 } },
  obstacle: { reading: { obstacle: "zpdb exceeded" } },
  rollout: { reading: { rollout: "group shop/db" } },
  unfit: { reading: { unfit: "shop/api CrashLoopBackOff" } },
  missing: { reading: { missing: "work" } },
  onebyone: { reading: { oneByOne: "shop/a would wait for shop/b" } },
};

/** All of them, with those that make another shadow. */
const KNOWN: ReadonlySet<string> = new Set([
  ...Object.keys(WORDS),
  ...NODE_PHASES,
  "unread",
  "noshadow",
  "unreported",
  "foreign",
  "unreadable",
  "leftover",
  "going",
]);

interface Told {
  readonly node: UpdateNode;
  readonly entry: ActiveNode | undefined;
  readonly reading: NodeReading | undefined;
}

/** Reads `name W/R Phase zone:z takes:n1+n2@b words`. */
export function tell(text: string): Told {
  const [name = "", ...words] = text.trim().split(/\s+/);
  const pair = /^[ISRME]\/[ISRME]$/.test(words[0] ?? "") ? words.shift() : undefined;
  const [wanted = "I", reported = "I"] = pair?.split("/") ?? [];
  const phase = words.find((word): word is NodePhase => (NODE_PHASES as readonly string[]).includes(word));
  const valueOf = (key: string): string | undefined =>
    words.find((word) => word.startsWith(`${key}:`))?.slice(key.length + 1);
  const zone = valueOf("zone") ?? "";
  const others = valueOf("takes")
    ?.split("+")
    .filter((one) => one !== name)
    .map((one) => ({ name: one, zone: one.replace(/\d+$/, "") }));
  const said = words.flatMap((word) => WORDS[word] ?? []);
  for (const word of words) assert.ok(word.includes(":") || KNOWN.has(word), `${word} of ${text} says nothing`);
  const has = (word: string): boolean => words.includes(word);
  const spec = {
    state: STATES[wanted] as State,
    ...((pair || has("leftover")) && { version: "1.1.0", state_transition_timestamp: at(-MINUTE) }),
  };
  const status = Object.assign({ current_state: STATES[reported] }, ...said.map((one) => one.status)) as object;
  const own = shadow(name, spec, has("unreported") ? "none" : status);
  const stored = {
    ...own,
    ...(has("foreign") && { owner: { name, uid: "an earlier node" } }),
    ...(has("unreadable") && { problem: "status.crash_count: too big" }),
    ...(has("going") && { terminating: true }),
  };
  return {
    node: node(name, {
      zone,
      shadow: has("noshadow") ? undefined : stored,
      ...(Object.assign({}, ...said.map((one) => one.node)) as object),
    }),
    entry:
      phase && entry(name, { phase, ...(zone && { zone }), ...Object.assign({}, ...said.map((one) => one.entry)) }),
    reading: has("unread")
      ? undefined
      : { ...FREE, ...(others && { others }), ...Object.assign({}, ...said.map((one) => one.reading)) },
  };
}

interface Scene {
  /** Nodes, separated by commas. */
  readonly nodes: string;
  readonly spec?: object;
  readonly status?: Partial<PolicyStatus>;
  readonly ownNode?: string;
  readonly now?: number;
}

function sceneOf({ nodes, spec, status, ownNode, now = NOW }: Scene): PolicySnapshot {
  const told = nodes.split(",").filter(Boolean).map(tell);
  const active = told.flatMap(({ entry: one }) => one ?? []);
  return snapshot(
    told.map((one) => one.node),
    {
      now,
      ownNode,
      policy: policy(spec, { active, ...status }),
      readings: new Map(told.flatMap(({ node: { name }, reading }) => (reading ? [[name, reading]] : []))),
    },
  );
}

export const passOf = (scene: Scene): NodePlan => planPass(sceneOf(scene));

/** The same of nodes that words do not tell. */
export const planOf = (nodes: readonly UpdateNode[], more: Partial<PolicySnapshot> = {}): NodePlan =>
  planPass(snapshot(nodes, more));

/** What is repaired beside the updates. */
export const upkeepOf = (nodes: readonly UpdateNode[], more: Partial<UpkeepSnapshot> = {}): Upkeep[] =>
  planUpkeep({ now: NOW, active: new Map(), released: new Set(), isGoverned: true, nodes, ...more });

interface ReadFacts {
  /** Of the cluster, by the plural of their kind. */
  readonly objects: Readonly<Record<string, readonly object[]>>;
  /** What was drained from the node. */
  readonly drained?: NodeReading["workloads"];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** What the pods of the node say: what keeps it from its drain, and whether its work is back. */
export function readingOf(node: string, { objects, drained = [], now }: ReadFacts): Promise<NodeReading> {
  const kept = objects as Readonly<Record<string, readonly KubeObject[]>>;
  const cluster = {
    async *list({ plural, group }, { namespace, ...query }) {
      // What is no kind of Kubernetes' own may not be installed.
      if (group.includes("grafana") && !kept[plural]) throw new RolloutError("NotFound", plural);
      const matches = requestSelector(plural, new URLSearchParams(query)) ?? (() => true);
      const all = (kept[plural] ?? []).filter(
        ({ metadata }) => (namespace ?? metadata.namespace) === metadata.namespace,
      );
      yield { items: all.filter(matches) as never[], resourceVersion: "1" };
    },
    async get({ plural }, { namespace, name }) {
      const found = kept[plural]?.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
      if (!found) throw new RolloutError("NotFound", `${plural} ${name}`);
      return found as never;
    },
  } as Pick<Cluster, "list" | "get"> as Cluster;
  return createPodReader({ cluster, now, call: {} })({ node, drained });
}

/** What the pass writes and keeps, in a few words. */
export function describePlan({ status, writes, skips, toRead }: NodePlan): string {
  const parts: readonly (readonly [string, readonly string[]])[] = [
    ["wants", writes.map(({ node: { name }, spec }) => `${name} ${letterOf(spec.state)}${versionOf(spec.version)}`)],
    [
      "slots",
      status.active.map(({ node: name, phase, ending }) => `${name} ${phase}${ending ? ` ends ${ending.reason}` : ""}`),
    ],
    ["deferred", status.deferred.map(({ node: name, reason, count }) => `${name} ${reason} ${count}`)],
    ["failed", status.failed.map(({ node: name, reason }) => `${name} ${reason}`)],
    ["frozen", status.frozen ? [status.frozen.reason] : []],
    ["skips", skips.map(({ node: name, reason }) => `${name} ${reason}`)],
    ["reads", toRead],
  ];
  const said = parts.filter(([, list]) => list.length > 0).map(([what, list]) => `${what} ${list.join(", ")}`);
  return said.length === 0 ? "nothing" : said.join("; ");
}

/** The version of the update is not named. */
const versionOf = (version: string | null | undefined): string => (version === "1.1.0" ? "" : ` ${version ?? "-"}`);

interface TableOptions extends Partial<Scene> {
  /** Statuses that scenes name. */
  readonly named?: Readonly<Record<string, Partial<PolicyStatus>>>;
}

/** The cells of each row of a table, in lines; a line that is indented goes on. */
export const rowsOf = (table: string): string[][] =>
  table
    .replaceAll(/\n {4,}/g, " ")
    .trim()
    .split("\n")
    .map((line) => line.split(" | ").map((cell) => cell.trim()));

/**
 * Each row is `name | nodes {fields of the spec, or of the scene} | what the pass makes of them`.
 */
export function table(title: string, rows: string, { named = {}, ...more }: TableOptions = {}): void {
  describe(title, () => {
    for (const [name = "", scene = "", expected = ""] of rowsOf(rows))
      it(name, () => assert.equal(describePlan(passOf({ ...more, ...readScene(scene, named) })), expected));
  });
}

function readScene(text: string, named: Readonly<Record<string, Partial<PolicyStatus>>>): Scene {
  const [, nodes = "", fields = "{}"] = /^(.*?)(?: (\{.*\}))?$/.exec(text) ?? [];
  const { ownNode, status, ...spec } = parse(fields) as Partial<Scene> & Record<string, unknown>;
  const scene = {
    ownNode,
    status: typeof status === "string" ? named[status] : status,
    spec: Object.keys(spec).length > 0 ? spec : undefined,
  };
  const given = Object.entries(scene).filter(([, value]) => value !== undefined);
  return { nodes, ...Object.fromEntries(given) };
}
