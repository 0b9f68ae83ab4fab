/**
 * A world of zones, nodes and pods that are bound to some of them: a scheduler that obeys their rules, drains that
 * evict in any order what budgets allow, reboots, and the controller's plan. No deadline is ever reached: a drain that
 * does not end stands still for good, unless the policy says that the reboot ends it.
 */
import type { PodSpec } from "../../../infra/kubernetes/scheduling.ts";
import { decideEviction } from "../../../reconciler/budget/decide-eviction.ts";
import { isAllowed } from "../../../reconciler/budget/verdict.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import type { DrainFacts } from "../../../reconciler/nodes/drainable.ts";
import { whyNotDrainable } from "../../../reconciler/nodes/drainable.ts";
import type { UpdateNode } from "../../../reconciler/nodes/node.ts";
import { type NodePod, readNodePod } from "../../../reconciler/nodes/node-pod.ts";
import { findPlaces, judgeNodes, type Judged, whyNotOpen } from "../../../reconciler/nodes/places.ts";
import { planPass } from "../../../reconciler/nodes/plan-pass.ts";
import type { Policy } from "../../../reconciler/nodes/policy.ts";
import type { NodeReading } from "../../../reconciler/nodes/snapshot.ts";
import { podObject, statefulSetObject } from "../builders.ts";
import { budget } from "../budget/builders.ts";
import { busyNode, NOW, node, policy, shadow } from "./fixture.ts";

export interface Shape {
  /** Nodes of each zone. */
  readonly zones: readonly number[];
  /** Pods of the StatefulSet of each zone. */
  readonly pods: readonly number[];
  /** What binds the pods of each: their zone, the node that they were on first, one a node, or nothing. */
  readonly pins: readonly ("zone" | "node" | "apart" | "free")[];
  /** 0 for none. */
  readonly maxUnavailable: number;
  readonly maxConcurrent: number;
  readonly zonesInOrder: boolean;
  /** `drain.onTimeout: Reboot`. */
  readonly forced?: boolean;
}

/** Evictions in a row that are refused until the time of a drain is over. */
const MAX_REFUSALS = 10;

interface Member {
  readonly set: string;
  readonly ordinal: number;
  readonly spec: PodSpec;
  readonly isApart: boolean;
  /** Undefined while it waits for a place. */
  node: string | undefined;
}

type Pick = (below: number) => number;

export class PinnedWorld {
  nodes: UpdateNode[] = [];
  readonly members: Member[] = [];
  policy: Policy;
  readonly reached = { waits: 0, captives: 0, reboots: 0, forced: 0 };
  readonly #refused = new Map<string, number>();
  readonly #shape: Shape;
  readonly #pick: Pick;

  constructor(shape: Shape, pick: Pick) {
    this.#shape = shape;
    this.#pick = pick;
    const { maxConcurrent, zonesInOrder, forced = false } = shape;
    const drain = { onTimeout: forced ? "Reboot" : "Uncordon" };
    this.policy = policy({ maxConcurrent, zonesInOrder, health: { minReadySeconds: 0 }, drain });
    for (const [zone, count] of shape.zones.entries())
      for (let n = 0; n < count; n++) {
        const name = `${"abc"[zone]}${n}`;
        this.nodes.push(node(name, { zone: `z${zone}`, labels: { zone: `z${zone}`, host: name } }));
      }
    for (const [zone, count] of shape.pods.entries()) for (let n = 0; n < count; n++) this.#add(zone, n);
  }

  #add(zone: number, ordinal: number): void {
    const pin = this.#shape.pins[zone] ?? "free";
    const own = this.nodes.filter((one) => one.zone === `z${zone}`);
    const host = own[ordinal % own.length]?.name ?? "";
    const isApart = pin === "apart";
    if (isApart && ordinal >= own.length) return;
    const nodeSelector: Record<string, string> = pin === "free" ? {} : pin === "node" ? { host } : { zone: `z${zone}` };
    this.members.push({ set: `ingester-zone-${"abc"[zone]}`, ordinal, spec: { nodeSelector }, isApart, node: host });
  }

  #pod({ set, ordinal, spec, node: on }: Member): NodePod {
    const object = podObject(set, ordinal, { ready: on !== undefined, ...(on === undefined && { phase: "Pending" }) });
    const labels = { ...object.metadata?.labels, "rollout-group": "ingester" };
    return readNodePod({ ...object, metadata: { ...object.metadata, labels }, spec });
  }

  #judge(member: Member): Judged[] {
    const { nodeSelector = {} } = member.spec;
    const peers = this.members.filter((one) => one.set === member.set && one !== member && one.node !== member.node);
    const taken = member.isApart ? [{ topologyKey: "host", values: peers.flatMap((one) => one.node ?? []) }] : [];
    return judgeNodes({ nodeSelector, taken, terms: undefined, tolerations: [], requests: {}, claims: [] }, this.nodes);
  }

  #facts(on: string): DrainFacts {
    const { maxUnavailable } = this.#shape;
    const here = this.members.filter((member) => member.node === on);
    const sets = [...new Set(this.members.map(({ set }) => set))];
    const zones = sets.map((name) => {
      const own = this.members.filter(({ set }) => set === name);
      return {
        ...readZone(statefulSetObject({ name, replicas: own.length })),
        pods: own.map((member) => this.#pod(member)),
      };
    });
    const content = budget({ maxUnavailable });
    const ref = {
      kind: "ZoneAwarePodDisruptionBudget",
      namespace: "test",
      name: content.name,
      uid: content.uid,
    } as const;
    return {
      now: NOW,
      pods: here.map((member) => this.#pod(member)),
      budgets: maxUnavailable === 0 ? [] : [{ ref, content, matchLabels: content.matchLabels }],
      covered: new Map([[content.uid, { zones, reservations: {} }]]),
      coreBudgets: [],
      hasElsewhere: true,
      places: new Map(here.map((member) => [this.#pod(member).uid, findPlaces(this.#judge(member), on)])),
    };
  }

  #read(on: string): NodeReading {
    const drain = this.#facts(on);
    for (const { open, closed } of drain.places?.values() ?? [])
      if (open.length + closed.size === 0) this.reached.captives++;
    return { workloads: [], drain, obstacle: whyNotDrainable(drain) };
  }

  /** One pass of the controller. */
  pass(): ReadonlyMap<string, string> {
    const readings = new Map<string, NodeReading>();
    for (let i = 0; ; i++) {
      const plan = planPass({
        now: NOW,
        policy: this.policy,
        nodes: this.nodes,
        contested: new Map(),
        readings,
        ownNode: undefined,
      });
      if (i > 200) throw new Error("the plan never ends");
      for (const name of plan.toRead) readings.set(name, this.#read(name));
      if (plan.toRead.length > 0) continue;
      this.policy = { ...this.policy, status: plan.status };
      for (const { node: one, spec } of plan.writes)
        this.#change(one.name, { shadow: { ...(one.shadow ?? shadow(one.name)), spec } });
      return new Map(plan.skips.map((skip) => [skip.node, skip.reason]));
    }
  }

  #change(name: string, change: Partial<UpdateNode>): void {
    this.nodes = this.nodes.map((one) => (one.name === name ? { ...one, ...change } : one));
  }

  /** The scheduler, and then each host in any order. True if anything changed. */
  step(): boolean {
    const before = JSON.stringify([this.members, this.nodes]);
    for (const member of this.members.filter((one) => one.node === undefined)) {
      const found = this.#judge(member).filter(([on, lacks]) => lacks === undefined && whyNotOpen(on) === undefined);
      member.node = found[this.#pick(Math.max(1, found.length))]?.[0].name;
      if (member.node === undefined) this.reached.waits++;
    }
    const [first] = this.nodes.slice(this.#pick(this.nodes.length));
    for (const one of [...(first ? [first] : []), ...this.nodes]) this.#act(one.name);
    return before !== JSON.stringify([this.members, this.nodes]);
  }

  #act(name: string): void {
    const one = this.nodes.find((node) => node.name === name);
    const { spec, status } = one?.shadow ?? {};
    if (!one || !status || spec?.state === status.current_state) return;
    if (spec?.state === "RebootedIntoUpdate" && status.current_state === "StagedAndPerformedUpdate")
      return this.#drain(one);
    const cordon =
      spec?.state === "Idle" || spec?.state === "MonitoringUpdate"
        ? { unschedulable: false, cordonedBy: undefined }
        : {};
    this.#change(name, {
      ...cordon,
      shadow: { ...(one.shadow ?? shadow(name)), status: { ...status, current_state: spec?.state ?? "Idle" } },
    });
  }

  #drain(one: UpdateNode): void {
    this.#change(one.name, { unschedulable: true, cordonedBy: `shadow-${one.name}` });
    const here = this.members.filter((member) => member.node === one.name);
    const [victim] = here.slice(this.#pick(Math.max(1, here.length)));
    if (victim) {
      const { budgets, covered } = this.#facts(one.name);
      const [found] = budgets;
      const content = found && !("problem" in found.content) ? found.content : undefined;
      const facts = content && covered.get(content.uid);
      const pod = this.#pod(victim);
      const isGranted =
        !content || !facts || isAllowed(decideEviction({ now: NOW, pod, budget: content, ...facts, by: "" }));
      const refused = isGranted ? 0 : (this.#refused.get(one.name) ?? 0) + 1;
      this.#refused.set(one.name, refused);
      if (isGranted) victim.node = undefined;
      if (this.#shape.forced !== true || refused < MAX_REFUSALS) return;
      // The pods that remain come back with their node.
      this.reached.forced++;
    }
    this.reached.reboots++;
    const done = busyNode(one.name, "RebootedIntoUpdate", "RebootedIntoUpdate", {
      status: { current_version: "1.1.0", boot_id: "boot-2", boot_reported_at: "2026-01-01T00:00:00Z" },
    });
    this.#change(one.name, { bootId: "boot-2", unschedulable: false, cordonedBy: undefined, shadow: done.shadow });
  }
}
