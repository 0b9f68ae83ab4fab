/**
 * Plays a group whose pods are sick in every way that Kubernetes knows: what made it sick, the ticks that see it, and the
 * user's cure. It judges each step.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Reservation } from "../../../reconciler/budget/reservation.ts";
import type { Hold } from "../../../reconciler/model/decision.ts";
import { isReady, isTerminating } from "../../../reconciler/model/health.ts";
import type { DeletePods, ScaleZone } from "../../../reconciler/model/outcome.ts";
import type { ZoneWithPods } from "../../../reconciler/model/zone.ts";
import { budget as parse, PARTITIONS } from "../../builders/budgets.ts";
import { chooseScale, grantPods } from "../plan/shell.ts";
import { decideNext, decideWithoutPods } from "../rollout/adapter.ts";
import { createWorld, PAUSED } from "../rollout/world.ts";
import { MIRROR } from "../scaling/mirror-stage.ts";
import type { SmallCluster, Template } from "../small-cluster.ts";

/** Why pods of a template serve nothing, or only in part. Of `limping` pods one container works. */
const TEMPLATES = {
  crashing: { ailment: "crashing" },
  unpullable: { image: "registry.invalid/app" },
  unschedulable: { unschedulable: true },
  neverReady: { ailment: "failed" },
  limping: { ailment: "limping" },
} as const satisfies Record<string, Template>;
type Sickness = keyof typeof TEMPLATES;

const MINUTE = 60_000;

/** Pods of several zones that work in part are left to people. */
const sickness = fc.constantFrom<Sickness[]>("crashing", "unpullable", "unschedulable", "neverReady");
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
  // A quota of the namespace lets the controllers create no more pods.
  fc.record({ what: fc.constant("fill" as const) }),
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
type SickGroup = typeof sickGroup extends fc.Arbitrary<infer T> ? T : never;
type SickEvent = SickGroup["events"][number];

interface Played {
  readonly isSettled: boolean;
  readonly holds: readonly Hold[];
  /** Zones that had pods that were not ready when the user's cure began. */
  readonly sickZones: number;
  /** Milliseconds from the cure. */
  readonly tookMs: number;
  readonly violations: readonly string[];
}

function templateOf(number: number, sickness: Sickness | undefined): Template {
  const { image = "app", ...traits }: Template = sickness === undefined ? {} : TEMPLATES[sickness];
  return { image: `${image}:${number}`, ...traits };
}

const RESOURCE = { group: "g", version: "v1", plural: "templates" };

class Play {
  readonly cluster: SmallCluster;
  readonly names: readonly string[];
  readonly violations: string[] = [];
  readonly #group: SickGroup;
  /** What pods of a template suffer from, by its number; and the number of each zone's template. */
  readonly #templates: (Sickness | undefined)[];
  readonly #wanted = new Map<string, number>();
  readonly #reservations = new Map<string, Reservation>();
  /** What mirroring zones are to have. */
  #reference: number;
  #steps = 0;
  holds: readonly Hold[] = [];

  constructor(group: SickGroup) {
    const { scaling, maxUnavailable, sizes } = group.shape;
    const [first = 1] = sizes;
    this.#group = group;
    this.#reference = first;
    // A partition without a pod in some zone counts as unavailable there, so that a budget of 1 never lets its pods go
    // (§5.5).
    const isEven = scaling !== "none" || group.budget?.podNamePartitionRegex !== undefined;
    this.cluster = createWorld(isEven ? sizes.map(() => first) : sizes, maxUnavailable, {
      annotationsOf: (i) => ({
        ...(scaling === "followers" && i > 0 && { "grafana.com/rollout-downscale-leader": "ingester-zone-a" }),
        ...(scaling === "mirrors" && MIRROR),
      }),
      template: templateOf(0, group.first),
    });
    this.names = this.cluster.sets().map(({ metadata }) => metadata.name);
    this.#templates = [group.first];
  }

  /** One tick; true if it wrote anything. */
  tick(): boolean {
    const { cluster } = this;
    const now = cluster.now();
    const zones = cluster.zones();
    const reading = { resource: RESOURCE, wantedReplicas: this.#reference, reportedReplicas: this.#reference };
    const references = new Map(zones.map(({ uid }) => [uid, reading]));
    const { step, holds } = chooseScale({ zones }, { now, references });
    if (step) {
      this.#judgeScale(step, zones);
      cluster.change(step.zone.name, { replicas: step.replicas });
      return true;
    }
    const decision = decideNext(cluster.objects());
    this.holds = [...(decision?.action === "hold" ? [decision] : []), ...holds];
    if (decision?.action === "finishZone") cluster.finish(decision.zone.name);
    if (decision?.action !== "deletePods") return decision?.action === "finishZone";
    const { budget } = this.#group;
    const grants = budget && { budget: parse(budget), reservations: this.#reservations, now };
    const granted = grants ? grantPods(decision, zones, grants) : decision.pods;
    this.#judgeDeletion(decision, granted, zones);
    for (const { name } of granted) cluster.remove(name);
    if (granted.length === 0)
      this.holds = [{ action: "hold", reason: "BudgetSpent", message: "", objects: decision.pods }, ...holds];
    return granted.length > 0;
  }

  /** A pod that works goes only while every other zone is well, and within the limit of its own. */
  #judgeDeletion({ zone }: DeletePods, pods: DeletePods["pods"], zones: readonly ZoneWithPods[]): void {
    const working = pods.filter(isWorking);
    if (working.length === 0) return;
    for (const other of zones)
      if (other.uid !== zone.uid && isDegraded(other))
        this.violations.push(`${working[0]?.name} goes beside ${other.name}`);
    const own = zones.find(({ uid }) => uid === zone.uid) ?? assert.fail();
    const wanted = own.pods
      .slice(0, own.replicas)
      .filter((pod) => isWorking(pod) && !working.some(({ uid }) => uid === pod.uid));
    const { budget } = this.#group;
    const allowed = (budget?.podNamePartitionRegex === undefined && budget?.maxUnavailable) || Infinity;
    if (own.replicas - wanted.length > Math.min(zone.maxUnavailable, allowed))
      this.violations.push(`${working.length} pods of ${zone.name} go, too many`);
  }

  #judgeScale({ zone, replicas }: ScaleZone, zones: readonly ZoneWithPods[]): void {
    const own = zones.find(({ uid }) => uid === zone.uid);
    if (!own?.pods.slice(replicas).some(isWorking)) return;
    const losing = zones.find(
      (other) => other.uid !== zone.uid && other.pods.some((pod) => isTerminating(pod) && pod.health.served),
    );
    if (losing) this.violations.push(`${zone.name} shrinks while ${losing.name} loses pods`);
  }

  /** Controllers and kubelets, some of them late; true if anything moved. */
  settle(isWhole = this.#steps % 3 === 0): boolean {
    const { cluster, names } = this;
    const changed = this.#control();
    const pods = names.flatMap((name) => cluster.podsOf(name).map(({ metadata }) => metadata.name));
    const { pace } = this.#group;
    const picked = pods[(pace[this.#steps % pace.length] ?? 0) % Math.max(1, pods.length)];
    if (!isWhole) this.#steps++;
    const moving = isWhole ? pods : pods.filter((name) => name === picked);
    return moving.map((name) => this.#moveKubelet(name)).includes(true) || changed;
  }

  #control(): boolean {
    return this.names.map((name) => this.cluster.sync(name)).includes(true);
  }

  /** The kubelet of one pod: it ends, starts, or becomes ready, if it can. True if it did. */
  #moveKubelet(name: string): boolean {
    const { cluster } = this;
    const before = cluster.lifeOf(cluster.pod(name));
    cluster.runOut(name);
    return cluster.lifeOf(cluster.pod(name)) !== before;
  }

  #ticks(most: number): void {
    for (let i = 0; i < most; i++) {
      this.tick();
      this.settle(false);
      this.cluster.elapse(2000);
    }
  }

  /** A new template in one zone after the other. */
  #deploy(sickness: Sickness | undefined, from = 0, ticksApart = 0): void {
    const number = this.#templates.push(sickness) - 1;
    for (const [i] of this.names.entries()) {
      const name = this.names[(i + from) % this.names.length] ?? "";
      this.cluster.changeTemplate(name, templateOf(number, sickness));
      this.#wanted.set(name, number);
      this.#ticks(ticksApart);
    }
  }

  happen(one: SickEvent): void {
    const { cluster, names } = this;
    if (one.what === "ticks") return this.#ticks(one.ticks);
    if (one.what === "deploy") return this.#deploy(one.sickness);
    if (one.what === "scale") return this.#scaleBy(one.by);
    if (one.what === "fill") return cluster.limitPods(true);
    const zone = names[one.zone % names.length] ?? assert.fail();
    if (one.what === "pause") return cluster.annotate(zone, { [PAUSED]: "true" });
    const name = `${zone}-${one.pod % Math.max(1, cluster.set(zone).spec.replicas ?? 0)}`;
    if (["missing", "terminating"].includes(cluster.lifeOf(cluster.pod(name)))) return;
    if (one.what === "fail") return cluster.ail(name, one.ailment);
    cluster.annotatePod(name, { "sim/exit-after-ms": String(one.minutes * MINUTE) });
    cluster.remove(name);
    cluster.run(name);
  }

  #scaleBy(by: number): void {
    const { cluster, names } = this;
    const { scaling } = this.#group.shape;
    this.#reference = Math.max(1, this.#reference + by);
    if (scaling === "none")
      for (const name of names)
        cluster.change(name, { replicas: Math.max(1, (cluster.set(name).spec.replicas ?? 0) + by) });
    if (scaling === "followers" && names[0]) cluster.change(names[0], { replicas: this.#reference });
    this.#control();
  }

  /** A fixed template in one zone after the other, and the replicas that there were. */
  cure(): void {
    const { cluster, names } = this;
    const { shape, cure } = this.#group;
    cluster.limitPods(false);
    for (const name of names) cluster.annotate(name, { [PAUSED]: undefined });
    if (cure.reverts) this.#scaleBy((shape.sizes[0] ?? 1) - this.#reference);
    const isSick = names.some(
      (name) =>
        this.#templates[this.#wanted.get(name) ?? 0] !== undefined ||
        cluster.podsOf(name).some((pod) => !["ready", "terminating"].includes(cluster.lifeOf(pod))),
    );
    if (cure.deploys || isSick) this.#deploy(undefined, cure.from, cure.apart);
  }
}

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
  const { cluster, violations } = play;
  for (const one of group.events) play.happen(one);
  const sickZones = cluster.zones().filter(({ pods }) => pods.some((pod) => !isReady(pod))).length;
  const curedAt = cluster.now();
  play.cure();
  for (let quiet = 0; quiet < 3 && cluster.now() - curedAt < HORIZON;) {
    const isOver = !play.tick() && !play.settle() && !play.settle(true);
    // A settled group gets no second read.
    const isSettled = isOver && play.holds.length === 0 && decideWithoutPods(cluster.objects()) === undefined;
    quiet = isSettled ? quiet + 1 : 0;
    cluster.elapse(isOver && !isSettled ? MINUTE : 2000);
  }
  const tookMs = cluster.now() - curedAt;
  const isSettled = play.holds.length === 0 && tookMs < HORIZON;
  return { isSettled, holds: play.holds, sickZones, tookMs, violations };
}
