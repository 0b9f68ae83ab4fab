/** What people do with nodes, their hosts, and the policy of their updates. */
import { CORDONED_BY, MANAGED_LABEL, MANAGED_VALUE } from "../../../reconciler/nodes/shadow.ts";
import { dig, type Fields, textOf } from "../../emulator/objects.ts";
import { NAMESPACE } from "../names.ts";
import { type Action, insist, pause, type People, PODS, recreate } from "../person.ts";
import type { NodeHost } from "./node-host.ts";
import { type NodesShape, POLICIES, POLICY, policyObject, ZONE_LABEL } from "./shape.ts";
import { make } from "../../builders/objects.ts";

export const NODES_PATH = "/api/v1/nodes";
const POLICIES_PATH = "/apis/zonewise.dev/v1/nodeupdatepolicies";
export const SHADOWS_PATH = `/apis/brupop.bottlerocket.aws/v2/namespaces/${NAMESPACE}/bottlerocketshadows`;
export const policyPath = `${POLICIES_PATH}/${POLICY}`;
const KEPT = "sim/kept";
const STRAY = "stray";
const REMOVAL = { key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" };
/** How often a person on call looks. */
const ON_CALL_MS = 60_000;

const anyHost = ({ world, draw }: People): NodeHost => draw.of(world.fleet?.hosts ?? []);
const briefly = (people: People): Promise<void> =>
  pause(people, people.draw.between(1000, people.draw.of([20_000, 200_000])));

async function changeForAWhile(people: People, path: string, other: object, own: object): Promise<void> {
  await insist(people, path, other);
  await briefly(people);
  await insist(people, path, own);
}

export const label = (value: string | null): object => ({ metadata: { labels: { [MANAGED_LABEL]: value } } });
export const cordon = (value: true | null): object => ({ spec: { unschedulable: value } });

async function unfreeze(people: People): Promise<void> {
  const id = textOf(dig(people.world.store.get(POLICIES, undefined, POLICY), "status", "frozen", "id"));
  if (id !== undefined) await insist(people, policyPath, { spec: { unfreeze: id } });
}

/** A pod that nobody makes again, and whose end somebody may hold up. */
async function makeStray(people: People): Promise<void> {
  const { world, draw, shape } = people;
  const name = `${STRAY}-${draw.of(["x", "y", "z"])}`;
  const nodeSelector = { [ZONE_LABEL]: draw.of(shape.zones) };
  const finalizers = draw.chance(0.5) ? [KEPT] : [];
  await world.ask(
    "human",
    "POST",
    PODS,
    make("Pod", name, {
      namespace: NAMESPACE,
      metadata: { finalizers },
      spec: { nodeSelector, containers: [{ name: "main", image: "app:1" }] },
    }),
  );
  await briefly(people);
  await insist(people, `${PODS}/${name}`, { metadata: { finalizers: null } });
}

/** There may be one: the reconciler makes one where it has never seen any. */
export async function applyPolicy(people: People, nodes: NodesShape): Promise<void> {
  const policy = policyObject(nodes);
  const spec = { window: null, ...(policy["spec"] as Fields) };
  if (people.world.store.get(POLICIES, undefined, POLICY)) await insist(people, policyPath, { spec });
  else await recreate(people, POLICIES_PATH, policy);
}

const ACTIONS: Readonly<Record<string, Action>> = {
  cordonNode: (people) => changeForAWhile(people, `${NODES_PATH}/${anyHost(people).name}`, cordon(true), cordon(null)),
  /** Also if it is our cordon. */
  uncordonNode: (people) => insist(people, `${NODES_PATH}/${anyHost(people).name}`, cordon(null)),
  /** As an autoscaler does that is about to remove it, and thinks better of it. */
  taintNode: (people) => {
    const { name } = anyHost(people);
    return changeForAWhile(
      people,
      `${NODES_PATH}/${name}`,
      { spec: { taints: [REMOVAL] } },
      { spec: { taints: null } },
    );
  },
  unlabelNode: (people) =>
    changeForAWhile(people, `${NODES_PATH}/${anyHost(people).name}`, label(null), label(MANAGED_VALUE)),
  rebootNode: (people) => Promise.resolve(anyHost(people).reboot()),
  deleteNode: (people) => people.world.ask("human", "DELETE", `${NODES_PATH}/${anyHost(people).name}`),
  deleteShadow: (people) => people.world.ask("human", "DELETE", `${SHADOWS_PATH}/brs-${anyHost(people).name}`),
  changeLimit: (people) => insist(people, policyPath, { spec: { maxConcurrent: people.draw.between(0, 3) } }),
  switchUpdatesOff: (people) =>
    changeForAWhile(people, policyPath, { spec: { enabled: false } }, { spec: { enabled: true } }),
  deletePolicy: async (people) => {
    const { nodes } = people.shape;
    if (!nodes) return;
    await people.world.ask("human", "DELETE", policyPath);
    await briefly(people);
    await applyPolicy(people, nodes);
  },
  releaseVersion: ({ world, draw }) => Promise.resolve(world.fleet?.offer(`1.${draw.between(1, 3)}.0`)),
  unfreeze,
  makeStray,
};

export const nodeActions = ({ shape }: People): Readonly<Record<string, Action>> => ({ ...(shape.nodes && ACTIONS) });

/** Hosts are turned on, nodes are as they were, the policy is as it was written, and somebody is on call. */
export async function setNodesRight(people: People): Promise<void> {
  const { world, shape } = people;
  if (!shape.nodes || !world.fleet) return;
  for (const { name, repair } of world.fleet.hosts) {
    repair();
    const { metadata } = world.store.get("nodes", undefined, name) ?? {};
    if (metadata) await insist(people, `${NODES_PATH}/${name}`, { ...label(MANAGED_VALUE), spec: { taints: null } });
    if (metadata?.annotations?.[CORDONED_BY] === undefined) await insist(people, `${NODES_PATH}/${name}`, cordon(null));
  }
  for (const { metadata } of world.store.list("pods", NAMESPACE))
    if (metadata.name.startsWith(STRAY)) {
      await insist(people, `${PODS}/${metadata.name}`, { metadata: { finalizers: null } });
      await world.ask("human", "DELETE", `${PODS}/${metadata.name}`);
    }
  await applyPolicy(people, shape.nodes);
  void beOnCall(people);
}

async function beOnCall(people: People): Promise<never> {
  for (;;) {
    await unfreeze(people);
    await pause(people, ON_CALL_MS);
  }
}
