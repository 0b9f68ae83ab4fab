/** A world of hosts, agents and a controller that may die between any two writes: values only. */
import type { Shadow, UpdateNode } from "../../../reconciler/nodes/node.ts";
import { planPass, type NodePlan } from "../../../reconciler/nodes/plan-pass.ts";
import type { Policy } from "../../../reconciler/nodes/policy.ts";
import { policyStatus } from "../../../reconciler/nodes/policy-status.ts";
import type { NodeReading } from "../../../reconciler/nodes/snapshot.ts";
import type { ShadowSpec, ShadowStatus } from "../../../reconciler/nodes/shadow.ts";
import { planUpkeep } from "../../../reconciler/nodes/upkeep.ts";
import { at, NOW, node, policy, shadow } from "./fixture.ts";

export interface Host {
  readonly name: string;
  node: UpdateNode;
  spec: ShadowSpec;
  status: ShadowStatus;
  version: number;
  boots: number;
  /**
   * What happens to it: its agent is silent, its drain is blocked, its work is missing, its host stays down or boots
   * the old version.
   */
  silent: boolean;
  blocked: boolean;
  missing: boolean;
  dead: boolean;
  rollsBack: boolean;
}

export const TARGET = "1.1.0";
const MINUTE = 60_000;

export class World {
  ms = 0;
  policy: Policy;
  readonly hosts: Host[];
  readonly violations: string[] = [];
  readonly failures = new Set<string>();
  readonly #limit: number;

  constructor(count: number, limit: number) {
    this.#limit = limit;
    this.policy = policy({ maxConcurrent: limit, zonesInOrder: false });
    this.hosts = Array.from({ length: count }, (_, i) => {
      const name = `n${i}`;
      const { spec, status } = shadow(name);
      if (!status) throw new Error("no status");
      return {
        name,
        node: node(name),
        spec,
        status,
        version: 1,
        boots: 1,
        silent: false,
        blocked: false,
        missing: false,
        dead: false,
        rollsBack: false,
      };
    });
  }

  /** Counters of what the histories have reached. */
  readonly reached = { freezes: 0, drainsUndone: 0, reboots: 0, failures: 0, deaths: 0 };

  /** One pass of the controller, which dies after as many writes as `dies` says. */
  pass(dies = Number.POSITIVE_INFINITY): void {
    let writes = 0;
    const alive = (): boolean => writes++ < dies;
    const nodes = this.hosts.map((host) => this.#read(host));
    const plan = this.#plan(nodes);
    if (plan.status.frozen && !this.policy.status.frozen) this.reached.freezes++;
    this.reached.drainsUndone += plan.steps.filter(
      ({ step }) => step.step === "reset" && step.reason === "Frozen",
    ).length;
    if (dies < plan.writes.length + 1) this.reached.deaths++;
    const wasFrozen = this.policy.status.frozen !== undefined;
    if (alive()) this.policy = { ...this.policy, status: policyStatus.parse(JSON.parse(JSON.stringify(plan.status))) };
    for (const { node: name } of plan.status.failed) this.failures.add(name);
    for (const { node: name } of plan.status.deferred) this.failures.add(name);
    for (const { node: written, spec } of plan.writes) {
      if (!alive()) return;
      const host = this.#host(written.name);
      if (
        wasFrozen &&
        this.policy.status.frozen &&
        (spec.state === "StagedAndPerformedUpdate" || spec.state === "RebootedIntoUpdate")
      )
        this.violations.push(`${host.name} was sent to ${spec.state} while frozen`);
      if (host.version === Number(written.shadow?.resourceVersion)) this.#write(host, { spec });
    }
    const { active, deferred } = this.policy.status;
    const upkeep = planUpkeep({
      nodes: this.hosts.map((host) => this.#read(host)),
      active: new Map(active.map(({ node: name }) => [name, false])),
      released: new Set(deferred.map(({ node: name }) => name)),
      governed: new Set(this.hosts.map(({ name }) => name)),
      now: NOW + this.ms,
    });
    // A write that meets a change of the agent's is repeated by the next pass.
    if (this.policy.status.frozen && writes <= dies) this.#checkFrozen();
    for (const one of upkeep)
      if (alive() && one.action === "uncordon") this.#mark(this.#host(one.node.name), undefined);
    this.#check();
  }

  #plan(nodes: readonly UpdateNode[]): NodePlan {
    const readings = new Map<string, NodeReading>();
    for (let i = 0; i < 100; i++) {
      const plan = planPass({
        now: NOW + this.ms,
        policy: this.policy,
        nodes,
        contested: new Map(),
        readings,
        ownNode: undefined,
      });
      if (plan.toRead.length === 0) return plan;
      for (const name of plan.toRead) {
        const { blocked, missing } = this.#host(name);
        readings.set(name, {
          workloads: [],
          ...(blocked && { obstacle: "budget" }),
          ...(missing && { missing: "work" }),
        });
      }
    }
    throw new Error("the plan never ends");
  }

  /** The agent and its host take one step. */
  step(host: Host): void {
    const { spec, status } = host;
    const rebooted = status.rebooting && status.rebooting.boot_id !== `boot-${host.boots}`;
    if (host.dead || (host.silent && host.node.ready)) return;
    if (!host.node.ready) return this.#comeBack(host);
    if (rebooted) return this.#afterReboot(host);
    if (status.current_state === "ErrorReset" || spec.state === "Idle") {
      // A host that was to reboot and runs on: its agent knows that no reboot is under way.
      if (spec.state === "Idle" && status.current_state !== "Idle") this.#recover(host);
      return;
    }
    if (spec.state === status.current_state) return;
    if (spec.state === "RebootedIntoUpdate") return this.#drain(host);
    this.#write(host, { status: { ...status, current_state: spec.state } });
  }

  /** The agent's action fails. */
  fail(host: Host): void {
    const { spec, status } = host;
    if (
      host.silent ||
      host.dead ||
      !host.node.ready ||
      status.rebooting ||
      spec.state === status.current_state ||
      spec.state === "Idle"
    )
      return;
    this.#report(host, "ErrorReset");
  }

  #report(host: Host, current_state: ShadowStatus["current_state"], rest: Partial<ShadowStatus> = {}): void {
    const { status } = host;
    if (current_state === "ErrorReset") this.reached.failures++;
    const counts =
      current_state === "ErrorReset"
        ? { crash_count: status.crash_count + 1, state_transition_failure_timestamp: at(this.ms) }
        : {};
    this.#write(host, { status: { ...status, ...counts, ...rest, current_state } });
  }

  #recover(host: Host): void {
    this.#mark(host, undefined);
    this.#report(host, "Idle", { rebooting: null });
  }

  #drain(host: Host): void {
    if (host.node.cordonedBy === undefined) return this.#mark(host, `shadow-${host.name}`);
    if (host.blocked) return;
    if (!host.status.rebooting)
      return this.#write(host, {
        status: { ...host.status, rebooting: { boot_id: `boot-${host.boots}`, at: at(this.ms) } },
      });
    this.reached.reboots++;
    host.node = { ...host.node, ready: false, readySince: NOW + this.ms };
  }

  #comeBack(host: Host): void {
    host.boots++;
    host.node = { ...host.node, ready: true, readySince: NOW + this.ms, bootId: `boot-${host.boots}` };
  }

  #afterReboot(host: Host): void {
    const current_version = host.rollsBack ? "1.0.0" : TARGET;
    const rest = { current_version, rebooting: null, boot_id: `boot-${host.boots}`, boot_reported_at: at(this.ms) };
    if (host.rollsBack) return this.#report(host, "ErrorReset", rest);
    this.#mark(host, undefined);
    this.#report(host, "RebootedIntoUpdate", rest);
  }

  #mark(host: Host, cordonedBy: string | undefined): void {
    const annotations: Record<string, string> =
      cordonedBy === undefined ? {} : { "zonewise.dev/cordoned-by": cordonedBy };
    host.node = { ...host.node, cordonedBy, annotations };
  }

  #write(host: Host, { spec = host.spec, status = host.status }: Partial<Pick<Host, "spec" | "status">>): void {
    Object.assign(host, { spec, status, version: host.version + 1 });
  }

  #read({ node: one, name, spec, status, version }: Host): UpdateNode {
    const seen: Shadow = { ...shadow(name), resourceVersion: String(version), spec, status };
    return { ...one, shadow: seen };
  }

  #host(name: string): Host {
    const found = this.hosts.find((host) => host.name === name);
    if (!found) throw new Error(`no host ${name}`);
    return found;
  }

  /** A person's word. */
  unfreeze(): void {
    const { frozen } = this.policy.status;
    if (frozen) this.policy = { ...this.policy, unfreeze: frozen.id };
  }

  /** After a pass that has ended, no node that is Ready goes on to its reboot while the policy is frozen. */
  #checkFrozen(): void {
    for (const { name, spec, status, node } of this.hosts)
      if (
        node.ready &&
        spec.state === "RebootedIntoUpdate" &&
        status.current_state === "StagedAndPerformedUpdate" &&
        !status.rebooting
      )
        this.violations.push(`${name} goes on to its reboot while frozen`);
  }

  /** Nodes that we take out of service, without those that a person has let go. */
  #check(): void {
    const released = new Set(
      this.policy.status.deferred.filter(({ reason }) => reason === "ReleasedByHand").map(({ node: name }) => name),
    );
    const out = this.hosts.filter(
      (host) => !released.has(host.name) && (host.node.cordonedBy !== undefined || !host.node.ready),
    );
    if (out.length > this.#limit)
      this.violations.push(`${out.map(({ name }) => name).join()} are out of service at once`);
    if (this.policy.status.active.length > this.#limit)
      this.violations.push(`${this.policy.status.active.length} are active`);
  }

  advance(minutes: number): void {
    this.ms += minutes * MINUTE;
  }
}
