/** The oracle of nodes against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CORDONED_BY, MANAGED_LABEL, MANAGED_VALUE } from "../../../reconciler/nodes/shadow.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { type Kind, make, stored, type Traits } from "../../builders/objects.ts";
import { drawFrom } from "../draw.ts";
import { NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import type { HostTold } from "./fleet.ts";
import { createNodeSafety } from "./safety.ts";
import { drawNodesShape, type NodesShape, POLICIES, POLICY, SHADOWS, ZONE_LABEL } from "./shape.ts";

const SHAPE: NodesShape = {
  ...drawNodesShape(drawFrom(1)),
  maxConcurrent: 1,
  drain: { timeoutSeconds: 60, onTimeout: "Uncordon" },
};
const [A1, A2, B1] = ["node-a-1", "node-a-2", "node-b-1"];
const RECONCILER: Caller = { actor: "reconciler-1", call: "PATCH nodes/x" };
const NODE_API: Caller = { actor: "node-api-1", call: "PATCH nodes/x" };
const HUMAN: Caller = { actor: "human", call: "PATCH nodes/x" };
const START = Date.UTC(2026, 0, 1);
const BOOT = "boot-1";

interface Stored {
  readonly cordoned?: boolean;
  readonly mark?: boolean;
  readonly ready?: boolean;
}

const object = (kind: Kind, name: string, traits: Traits): KubeObject =>
  stored(make(kind, name, { namespace: NAMESPACE, ...traits }));

const node = (name: string, { cordoned = false, mark = false, ready = true }: Stored = {}): KubeObject =>
  object("Node", name, {
    labels: { [ZONE_LABEL]: name.slice(0, -2), [MANAGED_LABEL]: MANAGED_VALUE },
    annotations: mark ? { [CORDONED_BY]: "x" } : {},
    spec: { ...(cordoned && { unschedulable: true }) },
    status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }], nodeInfo: { bootID: BOOT } },
  });

const shadow = (name: string, state: string, boot?: string): KubeObject =>
  object("BottlerocketShadow", `brs-${name}`, {
    spec: { state },
    status: boot === undefined ? {} : { rebooting: { boot_id: boot } },
  });
const pod = (name: string, on: string, fields: { terminating?: boolean; daemon?: boolean } = {}): KubeObject =>
  object("Pod", name, {
    metadata: {
      ...(fields.terminating && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      ...(fields.daemon && { ownerReferences: [{ kind: "DaemonSet" }] }),
    },
    spec: { nodeName: on },
    status: { phase: "Running" },
  });
const policy = (spec: object, status: object = {}): KubeObject =>
  object("NodeUpdatePolicy", POLICY, { spec: { maxConcurrent: 1, ...spec }, status });

/** What happens in a history. */
interface Tools {
  readonly store: (resource: string, object: KubeObject, by?: Caller) => void;
  readonly remove: (resource: string, object: KubeObject, by?: Caller) => void;
  readonly host: (node: string, ...what: readonly HostTold["what"][]) => void;
  readonly wait: (minutes: number) => void;
}

function judge(shape: Partial<NodesShape>, happen: (tools: Tools) => void): string {
  const objects = new Map<string, KubeObject>();
  const violations: string[] = [];
  let now = START;
  const oracle = createNodeSafety({
    nodes: { ...SHAPE, ...shape },
    violated: (what) => void violations.push(what),
    now: () => now,
    store: () => ({
      get: (resource, _, name) => objects.get(`${resource}/${name}`),
      list: (resource) => [...objects].flatMap(([key, one]) => (key.startsWith(`${resource}/`) ? [one] : [])),
    }),
  });
  const tools: Tools = {
    store(resource, object, by) {
      const key = `${resource}/${object.metadata.name}`;
      const previous = objects.get(key);
      objects.set(key, object);
      const event: StoreEvent = previous
        ? { type: "MODIFIED", resource, object, previous }
        : { type: "ADDED", resource, object };
      oracle.onEvent(event, by);
    },
    remove(resource, object, by) {
      objects.delete(`${resource}/${object.metadata.name}`);
      oracle.onEvent({ type: "DELETED", resource, object }, by);
    },
    host: (node, ...what) => what.forEach((one) => oracle.onHost({ node, what: one })),
    wait: (minutes) => void (now += minutes * 60_000),
  };
  for (const name of [A1, A2, B1]) tools.store("nodes", node(name));
  tools.store(POLICIES, policy({}));
  tools.wait(10);
  happen(tools);
  return violations.join("; ");
}

type Happening = (tools: Tools, node: string, detail: string) => void;
const put =
  (stored: Stored, by?: Caller): Happening =>
  ({ store }, name) =>
    store("nodes", node(name, stored), by);
const wish =
  (state: string, boot?: string, by?: Caller): Happening =>
  ({ store }, name) =>
    store(SHADOWS, shadow(name, state, boot), by);
const boots =
  (...what: readonly HostTold["what"][]): Happening =>
  ({ host }, name) =>
    host(name, ...what);
const holds =
  (fields: { terminating?: boolean; daemon?: boolean } = {}, by?: Caller): Happening =>
  ({ store }, name) =>
    store("pods", pod(fields.daemon ? "agent" : "ingester-zone-a-0", name, fields), by);
const decree =
  (spec: object, status?: object, by = HUMAN): Happening =>
  ({ store }) =>
    store(POLICIES, policy(spec, status), by);

/** What happens in a history, each with the node that it happens to. */
const HAPPENINGS: Readonly<Record<string, Happening>> = {
  "the API cordons": put({ cordoned: true, mark: true }, NODE_API),
  "the API uncordons": put({}, NODE_API),
  "the reconciler uncordons": put({}, RECONCILER),
  "the API uncordons unready": put({ ready: false }, NODE_API),
  "a person cordons": put({ cordoned: true }, HUMAN),
  "a kubelet reports cordoned": put({ cordoned: true }),
  "a reboot is announced for": wish("RebootedIntoUpdate", BOOT, NODE_API),
  "the API drains": (tools, name, detail) => {
    put({ cordoned: true, mark: true }, NODE_API)(tools, name, detail);
    wish("RebootedIntoUpdate", BOOT, NODE_API)(tools, name, detail);
  },
  "a reboot is wanted of": wish("RebootedIntoUpdate"),
  "an earlier boot is announced for": wish("RebootedIntoUpdate", "boot-0"),
  "nothing is wanted of": wish("Idle"),
  "the agent reboots": boots("asked", "down"),
  "the agent asks to reboot": boots("asked"),
  "a person reboots": boots("down"),
  "back is": boots("up"),
  "a pod runs on": holds(),
  "a pod is terminating on": holds({ terminating: true }),
  "a DaemonSet has a pod on": holds({ daemon: true }),
  "the API evicts from": holds({ terminating: true }, NODE_API),
  "the policy allows two": decree({ maxConcurrent: 2 }),
  "the policy allows one": decree({ maxConcurrent: 1 }),
  "the policy is released": decree({ unfreeze: "x" }),
  "the policy is frozen": decree({}, { frozen: { id: "x" } }, RECONCILER),
  "the policy has begun with": ({ store }, name) =>
    store(POLICIES, policy({}, { active: [{ node: name, startedAt: "x" }] })),
  "minutes pass:": ({ wait }, _, minutes) => wait(Number(minutes)),
};

/** `the API cordons a-1, minutes pass: 3, the policy is off`. */
function play(history: string, tools: Tools): void {
  for (const line of history.split(", ")) {
    const [, what = line, detail = ""] = /^(.*?)(?: (\S*\d\S*))?$/.exec(line) ?? [];
    (HAPPENINGS[what] ?? assert.fail(what))(tools, `node-${detail}`, detail);
  }
}

const SHAPES: Readonly<Record<string, Partial<NodesShape>>> = {
  two: { maxConcurrent: 2 },
  forced: { drain: { timeoutSeconds: 300, onTimeout: "Reboot" } },
};

/** `what happens (shape) | history | the violation, if it must be condemned`; a line that is indented goes on. */
const CASES = `
  two nodes of a zone, one allowed | the API cordons a-1, the API cordons a-2 | node-a-2 is taken .* 1 may be
  two nodes of a zone, two allowed (two) | the API cordons a-1, the API cordons a-2
  two nodes of two zones (two) | the API cordons a-1, the API cordons b-1 | ^two zones at once
  one node after the other | the API cordons a-1, the API uncordons a-1, the API cordons b-1
  a node that is back and not Ready | the API cordons a-1, the API uncordons unready a-1, the API cordons b-1
    | 1 may be
  a node that is back, with a person's cordon alone
    | a person cordons a-1, a reboot is announced for a-1, the agent reboots a-1, back is a-1,
      a kubelet reports cordoned a-1, the API cordons b-1
  a node that is down, with a person's cordon alone
    | a person cordons a-1, a reboot is announced for a-1, the agent reboots a-1,
      a kubelet reports cordoned a-1, the API cordons b-1 | 1 may be
  two nodes shortly after a person has lowered the limit
    | the policy allows two, the policy allows one, the API cordons a-1, the API cordons a-2
  a node beside one that a person has released from a freeze
    | the API cordons a-1, the policy is released, the API cordons b-1
  an end of a person's cordon | a person cordons a-1, the API uncordons a-1
    | uncordons node-a-1, which a person has cordoned
  a person's cordon that is marked as ours | a person cordons a-1, the API cordons a-1 | takes a person's cordon
  an end of our own cordon | the API cordons a-1, the reconciler uncordons a-1
  a reboot of a drained node | the API drains a-1, the agent reboots a-1
  a reboot that nobody announced | the API cordons a-1, a reboot is wanted of a-1, the agent asks to reboot a-1
    | without an announcement
  a reboot announced for an earlier boot
    | the API cordons a-1, an earlier boot is announced for a-1, the agent asks to reboot a-1
    | without an announcement
  a reboot with a pod | a pod runs on a-1, the API drains a-1, the agent reboots a-1
    | node-a-1 reboots with ingester-zone-a-0 on it
  a reboot with a pod that is still terminating
    | a pod is terminating on a-1, the API drains a-1, the agent reboots a-1 | reboots with ingester-zone-a-0
  a reboot with a pod of a DaemonSet, and pods elsewhere
    | a DaemonSet has a pod on a-1, a pod runs on a-2, the API drains a-1, the agent reboots a-1
  a reboot by a person, with pods | a pod runs on a-1, a person reboots a-1
  a forced reboot before its time (forced)
    | a pod runs on a-1, the API drains a-1, minutes pass: 4, the agent reboots a-1 | reboots with
  a forced reboot in its time (forced)
    | a pod runs on a-1, the API drains a-1, minutes pass: 6, the agent reboots a-1
  a reboot without a cordon | a reboot is announced for a-1, the agent reboots a-1 | reboots without a cordon
  a second reboot in one attempt
    | the policy has begun with a-1, the API drains a-1, the agent reboots a-1, back is a-1,
      the agent asks to reboot a-1 | rebooted again in an attempt
  a reboot while frozen | the API drains a-1, the policy is frozen, minutes pass: 3, the agent asks to reboot a-1
    | rebooted long after the policy has frozen
  an eviction for a reboot that is wanted | a reboot is wanted of a-1, a pod runs on a-1, the API evicts from a-1
  an eviction for a reboot that nobody wants
    | a reboot is wanted of a-1, nothing is wanted of a-1, a pod runs on a-1, minutes pass: 3,
      the API evicts from a-1 | evicts ingester-zone-a-0 from node-a-1, whose reboot nobody wants
`;

describe("the oracle of nodes", () => {
  for (const row of CASES.replaceAll(/\n {4,}/g, " ")
    .trim()
    .split("\n")) {
    const [name = "", history = "", violation] = row.split(" | ").map((part) => part.trim());
    it(`${violation === undefined ? "accepts" : "condemns"} ${name}`, () => {
      const [, shape = ""] = /\((\w+)\)$/.exec(name) ?? [];
      const found = judge(SHAPES[shape] ?? {}, (tools) => play(history, tools));
      assert.match(found, violation === undefined ? /^$/ : new RegExp(violation));
      assert.doesNotMatch(found, /;/, "one violation");
    });
  }
});
