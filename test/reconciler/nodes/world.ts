/** A world of hosts, their agents and a controller that may die between any two writes: values only. */
import type { Shadow, UpdateNode } from "../../../reconciler/nodes/node.ts";
import type { NodePlan } from "../../../reconciler/nodes/plan-pass.ts";
import { type Policy, policyStatus } from "../../../reconciler/nodes/policy.ts";
import type { NodeReading } from "../../../reconciler/nodes/snapshot.ts";
import type { ShadowSpec, ShadowStatus } from "../../../reconciler/nodes/shadow.ts";
import { type AgentNode, agentStep, boot, isAnnounced } from "../../emulator/controllers/agent-step.ts";
import { planOf, upkeepOf } from "./adapter.ts";
import { NOW, node, policy, shadow } from "./fixture.ts";

export interface Host {
  readonly name: string;
  node: UpdateNode;
  spec: ShadowSpec;
  status: ShadowStatus;
  /** Of its shadow. */
  version: number;
  boots: number;
  /** The version that runs. */
  runs: string;
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
const bootOf = ({ boots }: Host): string => `boot-${boots}`;
const MINUTE = 60_000;

const viewOf = (host: Host): AgentNode => ({
  spec: host.spec,
  status: host.status,
  host: { version: host.runs, bootId: bootOf(host) },
  target: TARGET,
  cordoned: host.node.cordonedBy !== undefined,
});

export class World {
  ms = 0;
  policy: Policy;
  readonly hosts: Host[];
  readonly violations: string[] = [];
  readonly failures = new Set<string>();
  readonly #limit: number;

  constructor(count: number, limit: number) {
    this.#limit = limit;
    this.policy = policy({ maxConcurrent: limit });
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
        runs: status.current_version,
        silent: false,
        blocked: false,
        missing: false,
        dead: false,
        rollsBack: false,
      };
    });
  }

  /** One pass of the controller, which dies after as many writes as `dies` says. */
  pass(dies = Number.POSITIVE_INFINITY): void {
    let writes = 0;
    const alive = (): boolean => writes++ < dies;
    const nodes = this.hosts.map((host) => this.#read(host));
    const plan = this.#plan(nodes);
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
    const upkeep = upkeepOf(
      this.hosts.map((host) => this.#read(host)),
      {
        active: new Map(active.map(({ node: name }) => [name, false])),
        released: new Set(deferred.map(({ node: name }) => name)),
        now: NOW + this.ms,
      },
    );
    // A write that meets a change of the agent's is repeated by the next pass.
    if (this.policy.status.frozen && writes <= dies) this.#checkFrozen();
    for (const one of upkeep)
      if (alive() && one.action === "uncordon") this.#mark(this.#host(one.node.name), undefined);
    this.#check();
  }

  #plan(nodes: readonly UpdateNode[]): NodePlan {
    const readings = new Map<string, NodeReading>();
    for (let i = 0; i < 100; i++) {
      const plan = planOf(nodes, { now: NOW + this.ms, policy: this.policy, readings });
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

  /** The agent and its host take one step, in which what the agent does fails if it is told to. */
  step(host: Host, fails = false): void {
    if (host.dead || (host.silent && host.node.ready)) return;
    if (!host.node.ready) return this.#comeBack(host);
    const found = viewOf(host);
    if (isAnnounced(found)) return this.#reboot(host);
    const { status, cordoned } = agentStep(found, NOW + this.ms, { blocked: host.blocked, fails });
    if (cordoned !== found.cordoned) this.#mark(host, cordoned ? `shadow-${host.name}` : undefined);
    if (!status || status === host.status) return;
    this.#write(host, { status });
  }

  #reboot(host: Host): void {
    host.node = { ...host.node, ready: false, readySince: NOW + this.ms };
  }

  #comeBack(host: Host): void {
    host.boots++;
    host.runs = boot(viewOf(host), bootOf(host), host.rollsBack).host.version;
    host.node = { ...host.node, ready: true, readySince: NOW + this.ms, bootId: bootOf(host) };
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
    for (const { name, spec, status, node, runs } of this.hosts)
      if (
        node.ready &&
        // It came back from its reboot otherwise, and is about to say so.
        runs !== TARGET &&
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
