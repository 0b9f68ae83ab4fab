/**
 * A cluster of zones under one gate, and an onlooker who judges by what was seen, not from the gate's record, if a zone
 * may begin.
 */
import assert from "node:assert/strict";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import type { CheckAnswer } from "../../../reconciler/checks/check.ts";
import { advanceGate } from "../../../reconciler/gates/advance.ts";
import type { Gate } from "../../../reconciler/gates/gate.ts";
import { isHeld, judgeGates } from "../../../reconciler/gates/hold.ts";
import { formatRecord, type GateRecord } from "../../../reconciler/gates/record.ts";
import { wantedBy, identityOf } from "../../../reconciler/gates/rollout.ts";
import { decideByStatus, decideRollout, decideUngated } from "../../../reconciler/rollout/decide-rollout.ts";
import type { RolloutDecision } from "../../../reconciler/rollout/decide-zone.ts";
import { isReady } from "../../../reconciler/model/health.ts";
import type { GroupSnapshot } from "../../../reconciler/model/zone.ts";
import type { StatefulSet } from "../../emulator/controllers/objects.ts";
import { carryOut, observe } from "../rollout/world.ts";
import { revisionOf, wantedRevision, type SmallCluster } from "../small-cluster.ts";
import { stored, T0 } from "./builders.ts";

const THRESHOLD = 2;
/** Longer than two periods. */
const KEPT_SECONDS = 60;
/** A cluster with one gate, and what an onlooker writes down of it. */
export class Play {
  readonly cluster: SmallCluster;
  readonly #when: readonly string[];
  #record: GateRecord | undefined;
  #writes = 0;
  #seconds = 0;
  /** Successes in a row that were written since the last zone began, or since another template. */
  #successes = 0;
  /** True if they were enough at some time since. */
  #haveSufficed = false;
  /** When the last answer came that was written. */
  #answeredAt = 0;
  /**
   * Zones of which a serving pod was deleted under these templates, and under earlier ones since the group was last
   * settled.
   */
  #identity = "";
  readonly #begun = new Set<string>();
  readonly #begunEarlier = new Set<string>();
  /** Zones of which any pod was deleted, broken ones as well. */
  readonly #touched = new Set<string>();
  readonly #touchedEarlier = new Set<string>();
  /** The revisions when the group was last settled. */
  #good = new Map<string, string>();
  /** Until when each zone has a bypass, in seconds. */
  readonly #bypasses = new Map<string, number>();
  /** Zones that had one that counts under these templates. */
  readonly #hadBypass = new Set<string>();
  readonly reached: Record<string, number>;

  constructor(cluster: SmallCluster, when: readonly string[], reached: Record<string, number> = {}) {
    this.cluster = cluster;
    this.#when = when;
    this.reached = reached;
  }

  get writes(): number {
    return this.#writes;
  }

  /** Somebody annotates the zone; 0 seconds removes the annotation. */
  bypass(zone: number, seconds: number): void {
    const { zones } = this.#observe();
    const name = zones[zone % zones.length]?.name ?? assert.fail();
    if (seconds === 0) this.#bypasses.delete(name);
    else this.#bypasses.set(name, this.#seconds + seconds);
  }

  /** Until when a bypass of the zone counts: none that is longer than a day does. */
  #isBypassed(name: string): boolean {
    const left = (this.#bypasses.get(name) ?? 0) - this.#seconds;
    return left > 0 && left <= 86_400;
  }

  #reach(what: string): void {
    this.reached[what] = (this.reached[what] ?? 0) + 1;
  }

  tick(answer: (at: number) => CheckAnswer, dies = "no", seconds = 5): RolloutDecision | undefined {
    this.#seconds += seconds;
    for (const { name } of this.#observe().zones) if (this.#isBypassed(name)) this.#hadBypass.add(name);
    const snapshot = this.#observe();
    const early = decideByStatus(snapshot.zones);
    if (early !== undefined && early !== "readPods") return early;
    const gate = stored({ spec: { when: this.#when }, check: { successThreshold: THRESHOLD } }, this.#record);
    const identity = identityOf(snapshot.zones);
    const wanted = wantedBy(decideUngated(snapshot));
    const group = { identity, zones: snapshot.zones, now: T0 + this.#seconds * 1000 };
    const gates = judgeGates([gate], group);
    const view = { ...group, wanted, isHeld: isHeld([gate], { ...group, wanted }) };
    const decision = decideRollout({ ...snapshot, gates });
    if (decision?.action === "hold" && decision.reason.startsWith("Gate")) this.#reach(decision.reason);
    const { due } = advanceGate(gate, view, new Map());
    const { record } = advanceGate(gate, view, new Map(due.map(({ name }) => [name, answer(view.now)])));
    if (decision?.action === "deletePods") this.#follow(identity);
    if (decision?.action === "deletePods" && decision.pods.some(isReady))
      this.#judge(decision.zone.name, decision.zone.status.updateRevision);
    if (decision?.action === "deletePods") this.#touched.add(decision.zone.name);
    if (decision) carryOut(decision, this.cluster);
    if (dies !== "before the write") this.#write(gate, record, due.length > 0);
    return decision;
  }

  #observe(): GroupSnapshot {
    const { zones, ...rest } = observe(this.cluster);
    return { ...rest, zones: zones.map((zone) => ({ ...zone, ...this.#written(zone.name) })) };
  }

  #written(name: string) {
    const until = this.#bypasses.get(name);
    return until === undefined ? {} : { bypass: { until: formatTimestamp(T0 + until * 1000) } };
  }

  #write(gate: Gate, record: GateRecord, hasAsked: boolean): void {
    const text = (one: GateRecord | undefined) => JSON.stringify(one && formatRecord(one));
    if (text(gate.record) === text(record)) return;
    this.#writes++;
    this.#follow(record.identity);
    const results = record.stages.at(-1)?.checks[0];
    if (results && hasAsked) this.#noteAnswer(results.lastVerdict === "Success");
    if (record.settledAt !== undefined) this.#settle();
    this.#record = record;
  }

  #noteAnswer(isSuccess: boolean): void {
    const isOld = this.#seconds - this.#answeredAt > KEPT_SECONDS;
    this.#successes = isSuccess ? (isOld ? 0 : this.#successes) + 1 : 0;
    this.#haveSufficed ||= this.#successes >= THRESHOLD;
    this.#answeredAt = this.#seconds;
  }

  /** Notes that the templates are others than before. */
  #follow(identity: string): void {
    if (identity === this.#identity) return;
    this.#identity = identity;
    for (const name of this.#begun) this.#begunEarlier.add(name);
    this.#begun.clear();
    for (const name of this.#touched) this.#touchedEarlier.add(name);
    this.#touched.clear();
    this.#successes = 0;
    this.#haveSufficed = false;
    this.#hadBypass.clear();
  }

  /** A serving pod of this zone is deleted: may it be? Told from what was seen, not from the record. */
  #judge(name: string, revision: string): void {
    if (this.#begun.has(name)) return;
    const podsOf = ({ metadata }: StatefulSet) => this.cluster.podsOf(metadata.name);
    const isRolled = (set: StatefulSet): boolean => {
      const wanted = wantedRevision(set);
      return (
        set.metadata.name !== name &&
        podsOf(set).length > 0 &&
        podsOf(set).length === set.spec.replicas &&
        wanted !== this.#good.get(set.metadata.name) &&
        podsOf(set).every((pod) => revisionOf(pod) === wanted)
      );
    };
    // A zone all of whose pods are as they were has not begun: a template came and went.
    const isBack = (set: StatefulSet): boolean =>
      podsOf(set).length === set.spec.replicas &&
      podsOf(set).every(
        (pod) => revisionOf(pod) === this.#good.get(set.metadata.name) && pod.metadata.deletionTimestamp === undefined,
      );
    const sets = this.cluster.sets();
    const back = new Set(sets.filter(isBack).map(({ metadata }) => metadata.name));
    const begun = [...this.#begun].filter((one) => !back.has(one));
    const earlier = [...this.#begunEarlier].filter((one) => !back.has(one));
    const isWayBack = this.#good.get(name) === revision;
    const isCure = begun.length === 0 && this.#touchedEarlier.has(name);
    const isFirst = begun.length === 0 && earlier.length === 0 && !sets.some(isRolled);
    // As long as only broken pods were replaced, it depends on more than is seen here which zone is the first.
    const isUnclear = begun.length === 0 && earlier.length === 0 && this.#touched.size + this.#touchedEarlier.size > 0;
    const isAsked = this.#when.includes(isFirst ? "BeforeFirstZone" : "BetweenZones");
    const isNew = isAsked && !isWayBack && !isCure && !isUnclear;
    if (isNew && !this.#isBypassed(name)) {
      // A zone of which a broken pod was replaced after it was recorded that it begins is under way.
      const isUnderWay = this.#touched.has(name) && (this.#haveSufficed || this.#hadBypass.has(name));
      const age = this.#seconds - this.#answeredAt;
      assert.ok(this.#successes >= THRESHOLD || isUnderWay, `${name} begins after ${this.#successes} successes`);
      assert.ok(age <= KEPT_SECONDS || isUnderWay, `${name} begins ${age} s after its last check`);
    }
    this.#begun.add(name);
    this.#successes = 0;
    this.#haveSufficed = false;
  }

  #settle(): void {
    this.#begun.clear();
    this.#begunEarlier.clear();
    this.#touched.clear();
    this.#touchedEarlier.clear();
    this.#good = new Map(this.#observe().zones.map(({ name, status }) => [name, status.updateRevision]));
  }
}
