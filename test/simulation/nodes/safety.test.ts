/** The oracle of nodes against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CORDONED_BY, MANAGED_LABEL, MANAGED_VALUE } from "../../../reconciler/nodes/shadow.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { drawFrom } from "../draw.ts";
import { NAMESPACE } from "../names.ts";
import type { Caller } from "../network.ts";
import type { HostTold } from "./fleet.ts";
import { createNodeSafety } from "./safety.ts";
import { drawNodesShape, LEFT_OUT, type NodesShape, POLICIES, POLICY, SHADOWS, ZONE_LABEL } from "./shape.ts";

const SHAPE: NodesShape = {
  ...drawNodesShape(drawFrom(1)),
  maxConcurrent: 1,
  windowed: false,
  selective: false,
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
  readonly labels?: Readonly<Record<string, string>>;
}

const objectOf = (name: string, fields: object, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z", ...metadata },
  ...fields,
});

function node(name: string, { cordoned = false, mark = false, ready = true, labels = {} }: Stored = {}): KubeObject {
  const status = { conditions: [{ type: "Ready", status: ready ? "True" : "False" }], nodeInfo: { bootID: BOOT } };
  const metadata = {
    labels: { [ZONE_LABEL]: name.slice(0, -2), [MANAGED_LABEL]: MANAGED_VALUE, [LEFT_OUT]: "false", ...labels },
    annotations: mark ? { [CORDONED_BY]: "x" } : {},
  };
  return objectOf(name, { spec: { ...(cordoned && { unschedulable: true }) }, status }, metadata);
}

const shadow = (name: string, state: string, boot?: string): KubeObject =>
  objectOf(
    `brs-${name}`,
    { spec: { state }, status: boot === undefined ? {} : { rebooting: { boot_id: boot } } },
    { namespace: NAMESPACE },
  );
const pod = (name: string, on: string, fields: { terminating?: boolean; daemon?: boolean } = {}): KubeObject =>
  objectOf(
    name,
    { spec: { nodeName: on }, status: { phase: "Running" } },
    {
      namespace: NAMESPACE,
      ...(fields.terminating && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      ...(fields.daemon && { ownerReferences: [{ kind: "DaemonSet" }] }),
    },
  );
const policy = (spec: object, status: object = {}): KubeObject =>
  objectOf(POLICY, { spec: { maxConcurrent: 1, ...spec }, status });

/** What happens in a history. */
interface Tools {
  readonly store: (resource: string, object: KubeObject, by?: Caller) => void;
  readonly remove: (resource: string, object: KubeObject, by?: Caller) => void;
  readonly host: (node: string, ...what: readonly HostTold["what"][]) => void;
  readonly wait: (minutes: number) => void;
}

function judge(shape: Partial<NodesShape>, play: (tools: Tools) => void): string {
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
  const { windowed = false, selective = false } = shape;
  tools.store(
    POLICIES,
    policy({ ...(windowed && { window: {} }), ...(selective && { nodeSelector: { [LEFT_OUT]: "false" } }) }),
  );
  tools.wait(10);
  play(tools);
  return violations.join("; ");
}

const cordon = ({ store }: Tools, name: string): void =>
  store("nodes", node(name, { cordoned: true, mark: true }), NODE_API);
const announce = ({ store }: Tools, name: string): void => {
  cordon({ store } as Tools, name);
  store(SHADOWS, shadow(name, "RebootedIntoUpdate", BOOT), NODE_API);
};
const start = ({ store }: Tools, name: string, by = RECONCILER): void => {
  store(SHADOWS, shadow(name, "Idle"), by);
  store(SHADOWS, shadow(name, "StagedAndPerformedUpdate"), by);
};

type Case = readonly [name: string, shape: Partial<NodesShape>, play: (tools: Tools) => void, expected: RegExp | ""];
const CASES: readonly Case[] = [
  ["two nodes of a zone, one allowed", {}, (t) => (cordon(t, A1), cordon(t, A2)), /node-a-2 is taken .* 1 may be/],
  ["two nodes of a zone, two allowed", { maxConcurrent: 2 }, (t) => (cordon(t, A1), cordon(t, A2)), ""],
  ["two nodes of two zones", { maxConcurrent: 2 }, (t) => (cordon(t, A1), cordon(t, B1)), /^two zones at once/],
  [
    "one node after the other",
    {},
    (t) => {
      cordon(t, A1);
      t.store("nodes", node(A1), NODE_API);
      cordon(t, B1);
    },
    "",
  ],
  [
    "a node that is back and not Ready",
    {},
    (t) => {
      cordon(t, A1);
      t.store("nodes", node(A1, { ready: false }), NODE_API);
      cordon(t, B1);
    },
    /1 may be/,
  ],
  [
    "a node that is back, with a person's cordon alone",
    {},
    (t) => {
      t.store("nodes", node(A1, { cordoned: true }), HUMAN);
      t.store(SHADOWS, shadow(A1, "RebootedIntoUpdate", BOOT), NODE_API);
      t.host(A1, "asked", "down", "up");
      t.store("nodes", node(A1, { cordoned: true }), undefined);
      cordon(t, B1);
    },
    "",
  ],
  [
    "a node that is down, with a person's cordon alone",
    {},
    (t) => {
      t.store("nodes", node(A1, { cordoned: true }), HUMAN);
      t.store(SHADOWS, shadow(A1, "RebootedIntoUpdate", BOOT), NODE_API);
      t.host(A1, "asked", "down");
      t.store("nodes", node(A1, { cordoned: true }), undefined);
      cordon(t, B1);
    },
    /1 may be/,
  ],
  [
    "two nodes shortly after a person has lowered the limit",
    { maxConcurrent: 1 },
    (t) => {
      t.store(POLICIES, policy({ maxConcurrent: 2 }), HUMAN);
      t.store(POLICIES, policy({ maxConcurrent: 1 }), HUMAN);
      cordon(t, A1);
      cordon(t, A2);
    },
    "",
  ],
  [
    "a node beside one that a person has released from a freeze",
    {},
    (t) => {
      cordon(t, A1);
      t.store(POLICIES, policy({ unfreeze: "x" }), HUMAN);
      cordon(t, B1);
    },
    "",
  ],
  [
    "an end of a person's cordon",
    {},
    (t) => {
      t.store("nodes", node(A1, { cordoned: true }), HUMAN);
      t.store("nodes", node(A1), NODE_API);
    },
    /uncordons node-a-1, which a person has cordoned/,
  ],
  [
    "a person's cordon that is marked as ours",
    {},
    (t) => {
      t.store("nodes", node(A1, { cordoned: true }), HUMAN);
      t.store("nodes", node(A1, { cordoned: true, mark: true }), NODE_API);
    },
    /takes a person's cordon/,
  ],
  ["an end of our own cordon", {}, (t) => (cordon(t, A1), t.store("nodes", node(A1), RECONCILER)), ""],
  ["a reboot of a drained node", {}, (t) => (announce(t, A1), t.host(A1, "asked", "down")), ""],
  [
    "a reboot that nobody announced",
    {},
    (t) => {
      cordon(t, A1);
      t.store(SHADOWS, shadow(A1, "RebootedIntoUpdate"));
      t.host(A1, "asked");
    },
    /without an announcement/,
  ],
  [
    "a reboot announced for an earlier boot",
    {},
    (t) => {
      cordon(t, A1);
      t.store(SHADOWS, shadow(A1, "RebootedIntoUpdate", "boot-0"));
      t.host(A1, "asked");
    },
    /without an announcement/,
  ],
  [
    "a reboot with a pod",
    {},
    (t) => {
      t.store("pods", pod("ingester-zone-a-0", A1));
      announce(t, A1);
      t.host(A1, "asked", "down");
    },
    /node-a-1 reboots with ingester-zone-a-0 on it/,
  ],
  [
    "a reboot with a pod that is still terminating",
    {},
    (t) => {
      t.store("pods", pod("ingester-zone-a-0", A1, { terminating: true }));
      announce(t, A1);
      t.host(A1, "asked", "down");
    },
    /reboots with ingester-zone-a-0/,
  ],
  [
    "a reboot with a pod of a DaemonSet, and pods elsewhere",
    {},
    (t) => {
      t.store("pods", pod("agent", A1, { daemon: true }));
      t.store("pods", pod("ingester-zone-a-0", A2));
      announce(t, A1);
      t.host(A1, "asked", "down");
    },
    "",
  ],
  [
    "a reboot by a person, with pods",
    {},
    (t) => {
      t.store("pods", pod("ingester-zone-a-0", A1));
      t.host(A1, "down");
    },
    "",
  ],
  [
    "a forced reboot before its time",
    { drain: { timeoutSeconds: 300, onTimeout: "Reboot" } },
    (t) => {
      t.store("pods", pod("ingester-zone-a-0", A1));
      announce(t, A1);
      t.wait(4);
      t.host(A1, "asked", "down");
    },
    /reboots with/,
  ],
  [
    "a forced reboot in its time",
    { drain: { timeoutSeconds: 300, onTimeout: "Reboot" } },
    (t) => {
      t.store("pods", pod("ingester-zone-a-0", A1));
      announce(t, A1);
      t.wait(6);
      t.host(A1, "asked", "down");
    },
    "",
  ],
  [
    "a reboot without a cordon",
    {},
    (t) => {
      t.store(SHADOWS, shadow(A1, "RebootedIntoUpdate", BOOT));
      t.host(A1, "asked", "down");
    },
    /reboots without a cordon/,
  ],
  [
    "a second reboot in one attempt",
    {},
    (t) => {
      t.store(POLICIES, policy({}, { active: [{ node: A1, startedAt: "x" }] }));
      announce(t, A1);
      t.host(A1, "asked", "down", "up", "asked");
    },
    /rebooted again in an attempt/,
  ],
  ["a start", {}, (t) => start(t, A1), ""],
  [
    "a start of a node that no policy selects",
    { selective: true },
    (t) => {
      t.store("nodes", node(A1, { labels: { [LEFT_OUT]: "true" } }));
      start(t, A1);
    },
    /that no policy selects/,
  ],
  [
    "a reboot of a node that no policy selects",
    { selective: true },
    (t) => {
      announce(t, A1);
      t.store("nodes", node(A1, { cordoned: true, mark: true, labels: { [LEFT_OUT]: "true" } }));
      t.host(A1, "asked");
    },
    /no policy selects/,
  ],
  [
    "a reboot of a node that the policy selected as its update began",
    {},
    (t) => {
      t.store("nodes", node(A1, { labels: { [LEFT_OUT]: "true" } }));
      start(t, A1);
      t.store(POLICIES, policy({ nodeSelector: { [LEFT_OUT]: "false" } }), HUMAN);
      announce(t, A1);
      t.store("nodes", node(A1, { cordoned: true, mark: true, labels: { [LEFT_OUT]: "true" } }));
      t.host(A1, "asked");
    },
    "",
  ],
  ["a start outside the window", { windowed: true }, (t) => (t.wait(7.5), start(t, A1)), /outside the window/],
  ["a start inside the window", { windowed: true }, (t) => (t.wait(3), start(t, A1)), ""],
  [
    "a start long after updates were switched off",
    {},
    (t) => {
      t.store(POLICIES, policy({ enabled: false }), HUMAN);
      t.wait(3);
      start(t, A1);
    },
    /switched off/,
  ],
  [
    "a start right after updates were switched off",
    {},
    (t) => {
      t.store(POLICIES, policy({ enabled: false }), HUMAN);
      start(t, A1);
    },
    "",
  ],
  [
    "a start while frozen",
    {},
    (t) => {
      t.store(POLICIES, policy({}, { frozen: { id: "x" } }), RECONCILER);
      t.wait(3);
      start(t, A1);
    },
    /has frozen/,
  ],
  [
    "a reboot while frozen",
    {},
    (t) => {
      announce(t, A1);
      t.store(POLICIES, policy({}, { frozen: { id: "x" } }), RECONCILER);
      t.wait(3);
      t.host(A1, "asked");
    },
    /rebooted long after the policy has frozen/,
  ],
  [
    "an eviction for a reboot that is wanted",
    {},
    (t) => {
      t.store(SHADOWS, shadow(A1, "RebootedIntoUpdate"));
      t.store("pods", pod("ingester-zone-a-0", A1));
      t.store("pods", pod("ingester-zone-a-0", A1, { terminating: true }), NODE_API);
    },
    "",
  ],
  [
    "an eviction for a reboot that nobody wants",
    {},
    (t) => {
      t.store(SHADOWS, shadow(A1, "RebootedIntoUpdate"));
      t.store(SHADOWS, shadow(A1, "Idle"));
      t.store("pods", pod("ingester-zone-a-0", A1));
      t.wait(3);
      t.store("pods", pod("ingester-zone-a-0", A1, { terminating: true }), NODE_API);
    },
    /evicts ingester-zone-a-0 from node-a-1, whose reboot nobody wants/,
  ],
];

describe("the oracle of nodes", () => {
  for (const [name, shape, play, expected] of CASES)
    it(`${expected === "" ? "accepts" : "condemns"} ${name}`, () => {
      const found = judge(shape, play);
      if (expected === "") assert.equal(found, "");
      else {
        assert.match(found, expected);
        assert.doesNotMatch(found, /;/, "one violation");
      }
    });
});
