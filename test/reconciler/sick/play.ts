/** Plays a sick group: what made it sick, the ticks that see it, and the user's cure. It judges each step. */
import { isReady, isTerminating } from "../../../reconciler/model/health.ts";
import type { DeletePods, ScaleZone } from "../../../reconciler/model/outcome.ts";
import assert from "node:assert/strict";
import fc from "fast-check";
import { budget as parse, PARTITIONS } from "../budget/builders.ts";
import type { ZoneWithPods } from "../../../reconciler/model/zone.ts";
import type { Reservation } from "../../../reconciler/budget/reservation.ts";
import type { Hold } from "../../../reconciler/model/decision.ts";
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { chooseScale, grantPods } from "../plan/shell.ts";
import {
  control,
  createSickWorld,
  addTemplate,
  giveTemplate,
  MINUTE,
  moveKubelet,
  podNames,
  settleKubelets,
  SICKNESSES,
  templateOfZone,
  type Sickness,
  type SickWorld,
} from "./world.ts";

/** Pods of several zones that work in part are left to people. */
const sickness = fc.constantFrom<Sickness[]>(...SICKNESSES.filter((one) => one !== "limping"));
const event = fc.oneof(
  fc.record({ what: fc.constant("deploy" as const), sickness: fc.option(sickness, { nil: undefined }) }),
  fc.record({ what: fc.constant("scale" as const), by: fc.integer({ min: -1, max: 2 }) }),
  fc.record({
    what: fc.constant("fail" as const),
    zone: fc.nat(3),
    pod: fc.nat(5),
    ailment: fc.constantFrom<("crashing" | "failed" | "limping")[]>("crashing", "failed"),
  }),
  fc.record({
    what: fc.constant("nodeDies" as const),
    zone: fc.nat(3),
    pod: fc.nat(5),
    minutes: fc.integer({ min: 1, max: 40 }),
  }),
  fc.record({ what: fc.constant("pause" as const), zone: fc.nat(3) }),
  fc.record({ what: fc.constant("ticks" as const), ticks: fc.integer({ min: 1, max: 8 }) }),
);

const BUDGETS: readonly ({ readonly maxUnavailable: number; readonly podNamePartitionRegex?: string } | undefined)[] = [
  undefined,
  { maxUnavailable: 0 },
  { maxUnavailable: 1 },
  { maxUnavailable: 2 },
  { ...PARTITIONS, maxUnavailable: 1 },
];

/** A group, what has made it sick, and the order in which the user cures it. */
export const sickGroup = fc.record({
  shape: fc.record({
    sizes: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 4, size: "max" }),
    maxUnavailable: fc.integer({ min: 1, max: 3 }),
    scaling: fc.constantFrom("none", "followers", "mirrors"),
  }),
  budget: fc.constantFrom(...BUDGETS),
  first: fc.option(sickness, { nil: undefined, freq: 1 }),
  events: fc.array(event, { minLength: 1, maxLength: 8, size: "max" }),
  /** Which of a fixed template and the way back of the replicas come, in which zone first, and how many ticks apart. */
  cure: fc.record({ reverts: fc.boolean(), deploys: fc.boolean(), from: fc.nat(3), apart: fc.nat(5) }),
  /** Which controllers and kubelets are late. */
  pace: fc.array(fc.nat(30), { minLength: 20, maxLength: 20 }),
});
export type SickGroup = typeof sickGroup extends fc.Arbitrary<infer T> ? T : never;
type SickEvent = SickGroup["events"][number];

export interface Played {
  readonly end: "settled" | "waiting" | "moving";
  readonly holds: readonly Hold[];
  readonly zones: readonly ZoneWithPods[];
  /** Zones that had pods that were not ready when the user's cure began. */
  readonly sickZones: number;
  /** Milliseconds from the cure. */
  readonly tookMs: number;
  readonly violations: readonly string[];
}

const RESOURCE = { group: "g", version: "v1", plural: "templates" };

class Play {
  readonly world: SickWorld;
  readonly violations: string[] = [];
  readonly reservations = new Map<string, Reservation>();
  holds: readonly Hold[] = [];
  steps = 0;
  readonly group: SickGroup;

  constructor(group: SickGroup) {
    // A partition without a pod in some zone counts as unavailable there, so that a budget of 1 never lets its pods go
    // (§5.5).
    const { sizes } = group.shape;
    const even = group.budget !== undefined && "podNamePartitionRegex" in group.budget;
    this.group = even ? { ...group, shape: { ...group.shape, sizes: sizes.map(() => sizes[0] ?? 1) } } : group;
    this.world = createSickWorld(this.group.shape, group.first);
  }

  /** One tick; true if it wrote anything. */
  tick(): boolean {
    const { world } = this;
    const { cluster } = world;
    const now = cluster.now();
    const snapshot = { namespace: "test", name: "ingester", zones: cluster.zones(), now };
    const references = new Map(
      snapshot.zones.map(({ uid }) => [
        uid,
        { resource: RESOURCE, wantedReplicas: world.reference, reportedReplicas: world.reference },
      ]),
    );
    const { step, holds } = chooseScale(snapshot, { now, references });
    if (step) {
      this.judgeScale(step, snapshot.zones);
      cluster.change(step.zone.name, { replicas: step.replicas });
      return true;
    }
    const decision = decideRollout(snapshot);
    this.holds = [...(decision?.action === "hold" ? [decision] : []), ...holds];
    if (decision?.action === "finishZone") {
      cluster.finish(decision.zone.name);
      return true;
    }
    if (decision?.action !== "deletePods") return false;
    const granted = this.grant(decision, snapshot.zones);
    this.judgeDeletion(decision, granted, snapshot.zones);
    for (const { name } of granted) cluster.remove(name);
    if (granted.length === 0)
      this.holds = [{ action: "hold", reason: "BudgetSpent", message: "", objects: decision.pods }, ...holds];
    return granted.length > 0;
  }

  private grant(decision: DeletePods, zones: readonly ZoneWithPods[]): DeletePods["pods"] {
    const { budget } = this.group;
    return budget
      ? grantPods(decision, zones, {
          budget: parse(budget),
          reservations: this.reservations,
          now: this.world.cluster.now(),
        })
      : decision.pods;
  }

  /** A pod that works goes only while every other zone is well, and within the limit of its own. */
  private judgeDeletion({ zone }: DeletePods, pods: DeletePods["pods"], zones: readonly ZoneWithPods[]): void {
    const working = pods.filter(isWorking);
    if (working.length === 0) return;
    for (const other of zones)
      if (other.uid !== zone.uid && isDegraded(other)) this.blame(`${working[0]?.name} goes beside ${other.name}`);
    const own = zones.find(({ uid }) => uid === zone.uid) ?? assert.fail();
    const wanted = own.pods
      .slice(0, own.replicas)
      .filter((pod) => isWorking(pod) && !working.some(({ uid }) => uid === pod.uid));
    const { budget } = this.group;
    const allowed =
      budget && !("podNamePartitionRegex" in budget) && budget.maxUnavailable > 0 ? budget.maxUnavailable : Infinity;
    if (own.replicas - wanted.length > Math.min(zone.maxUnavailable, allowed))
      this.blame(`${working.length} pods of ${zone.name} go, too many`);
  }

  private judgeScale({ zone, replicas }: ScaleZone, zones: readonly ZoneWithPods[]): void {
    const own = zones.find(({ uid }) => uid === zone.uid);
    if (!own?.pods.slice(replicas).some(isWorking)) return;
    const losing = zones.find(
      (other) => other.uid !== zone.uid && other.pods.some((pod) => isTerminating(pod) && pod.health.served),
    );
    if (losing) this.blame(`${zone.name} shrinks while ${losing.name} loses pods`);
  }

  private blame(what: string): void {
    this.violations.push(what);
  }

  /** Controllers and kubelets, some of them late; true if anything moved. */
  settle(isWhole: boolean): boolean {
    const { world, group } = this;
    const changed = control(world);
    if (isWhole) return settleKubelets(world) || changed;
    const pods = podNames(world);
    const pick = pods[(group.pace[this.steps++ % group.pace.length] ?? 0) % Math.max(1, pods.length)];
    return (pick !== undefined && moveKubelet(world, pick)) || changed;
  }

  ticks(most: number): void {
    for (let i = 0; i < most; i++) {
      this.tick();
      this.settle(false);
      this.world.cluster.elapse(2000);
    }
  }

  happen(one: SickEvent): void {
    const { world } = this;
    if (one.what === "ticks") return this.ticks(one.ticks);
    const { cluster, names } = world;
    if (one.what === "deploy") {
      const number = addTemplate(world, one.sickness);
      for (const name of names) giveTemplate(world, name, number);
      return;
    }
    if (one.what === "scale") return this.scaleBy(one.by);
    const zone = names[one.zone % names.length] ?? assert.fail();
    if (one.what === "pause") return cluster.annotate(zone, { [PAUSED]: "true" });
    const name = `${zone}-${one.pod % Math.max(1, cluster.set(zone).spec.replicas ?? 0)}`;
    if (["missing", "terminating"].includes(cluster.lifeOf(cluster.pod(name)))) return;
    if (one.what === "fail") return cluster.ail(name, one.ailment);
    cluster.annotatePod(name, { "sim/exit-after-ms": String(one.minutes * MINUTE) });
    cluster.remove(name);
    cluster.run(name);
  }

  scaleBy(by: number): void {
    const { world, group } = this;
    const { cluster, names } = world;
    world.reference = Math.max(1, world.reference + by);
    if (group.shape.scaling === "none")
      for (const name of names)
        cluster.change(name, { replicas: Math.max(1, (cluster.set(name).spec.replicas ?? 0) + by) });
    if (group.shape.scaling === "followers" && names[0]) cluster.change(names[0], { replicas: world.reference });
    control(world);
  }

  /** A fixed template in one zone after the other, and the replicas that there were. */
  cure(): void {
    const { world, group } = this;
    const { reverts, deploys, from, apart } = group.cure;
    const { cluster, names } = world;
    for (const name of names) cluster.annotate(name, { [PAUSED]: undefined });
    if (reverts) this.scaleBy((group.shape.sizes[0] ?? 1) - world.reference);
    const isSick = names.some(
      (name) =>
        templateOfZone(world, name) !== undefined ||
        cluster.podsOf(name).some((pod) => !["ready", "terminating"].includes(cluster.lifeOf(pod))),
    );
    if (!deploys && !isSick) return;
    const number = addTemplate(world, undefined);
    for (const [i] of names.entries()) {
      giveTemplate(world, names[(i + from) % names.length] ?? "", number);
      this.ticks(apart);
    }
  }
}

const PAUSED = "grafana.com/rollout-paused";

const isWorking = ({ health: { state } }: Pick<ZoneWithPods["pods"][number], "health">): boolean =>
  state === "ready" || state === "working";

/** A pod of its ordinals is not ready or missing; one beyond them serves or has served. */
function isDegraded({ pods, replicas }: ZoneWithPods): boolean {
  const wanted = pods.filter(({ name }) => Number(name.split("-").at(-1)) < replicas);
  return (
    wanted.length < replicas ||
    wanted.some((pod) => !isReady(pod)) ||
    pods.some((pod) => !wanted.includes(pod) && pod.health.served === true)
  );
}

/** Longer than any time that a rule or a dead node waits for. */
const HORIZON = 6 * 60 * MINUTE;

export function playSickGroup(group: SickGroup): Played {
  const play = new Play(group);
  const { world } = play;
  for (const one of group.events) play.happen(one);
  const { cluster } = world;
  const sickZones = cluster.zones().filter(({ pods }) => pods.some((pod) => !isReady(pod))).length;
  const curedAt = cluster.now();
  play.cure();
  for (let quiet = 0; quiet < 3 && cluster.now() - curedAt < HORIZON;) {
    const isOver = !play.tick() && !play.settle(play.steps % 3 === 0) && !play.settle(true);
    const isSettled = isOver && play.holds.length === 0;
    if (isSettled) quiet++;
    else quiet = 0;
    cluster.elapse(isOver && !isSettled ? MINUTE : 2000);
  }
  const tookMs = cluster.now() - curedAt;
  const isSettled = play.holds.length === 0 && cluster.now() - curedAt < HORIZON;
  return {
    end: isSettled ? "settled" : "waiting",
    holds: play.holds,
    zones: cluster.zones(),
    sickZones,
    tookMs,
    violations: play.violations,
  };
}
