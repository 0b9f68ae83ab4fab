/**
 * Finds places for the pods of a node: reads their claims and volumes, and the pods that they must not run beside,
 * each once a pass.
 */
import type { Source } from "../../../infra/kubernetes/actor.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import { absent, hasCode } from "../../../infra/errors.ts";
import { once } from "../../../infra/once.ts";
import { type PlacedPod, placedPods, volumeClaims, volumes } from "../../../infra/kubernetes/scheduling.ts";
import { readBudgetPod } from "../../budget/budget-pod.ts";
import { readAll } from "../../snapshot/gather.ts";
import { selectorText } from "../../model/zone.ts";
import type { LabelSelector } from "../../model/label-selector.ts";
import type { UpdateNode } from "../node.ts";
import { isOver, needsPlace, type NodePod } from "../node-pod.ts";
import {
  type BoundClaim,
  type Demands,
  findPlaces,
  judgeNodes,
  type Judged,
  type Places,
  type TakenDomain,
  whyNotOpen,
} from "../places.ts";
import type { Repelled } from "../pod-needs.ts";

export interface PlaceSource extends Source {
  readonly call: Call;
  /** Nodes that have been read. */
  readonly nodes: readonly UpdateNode[];
  /** The nodes among them that are being updated: all other nodes are read only if the rest does not suffice. */
  readonly busy: ReadonlySet<string>;
  readonly allNodes: () => Promise<readonly UpdateNode[]>;
}

export interface FoundPlaces {
  /** By the UID of each pod that needs a place. */
  readonly places: ReadonlyMap<string, Places>;
  /** The reason why places are not known. */
  readonly unknown?: string;
}

/** Rejects with `StaleRead`, or with an error of the API server other than `Forbidden`. */
export type FindPlaces = (node: string, pods: readonly NodePod[]) => Promise<FoundPlaces>;

/** Finds places for one pass. */
export function createPlaceFinder(source: PlaceSource): FindPlaces {
  const claims = once((key: string) => readClaim(key, source));
  const peers = once((key: string) => readPeers(key, source));
  const judged = once(async (key: string) => await judge(JSON.parse(key) as Demands, source));

  return async (node, pods) => {
    const places = new Map<string, Places>();
    try {
      for (const pod of pods.filter(needsPlace)) {
        const { nodeSelector, terms, tolerations, requests } = pod.needs;
        const demands: Demands = {
          nodeSelector,
          tolerations,
          requests,
          terms,
          claims: await Promise.all(pod.needs.claims.map((name) => claims(`${pod.namespace}/${name}`))),
          taken: await findTaken(pod, node),
        };
        places.set(pod.uid, findPlaces(await judged(JSON.stringify(demands)), node));
      }
      return { places };
    } catch (error) {
      if (!hasCode(error, "Forbidden")) throw error;
      return { places, unknown: `where its pods could go is not known: ${error.message}` };
    }
  };

  /** Pods of the node itself are drained as well. */
  async function findTaken({ uid, needs }: NodePod, node: string): Promise<TakenDomain[]> {
    return await Promise.all(
      needs.repels.map(async ({ topologyKey, selector, namespaces }) => {
        const found = (await Promise.all(namespaces.map((name) => peers(peerKey(name, selector))))).flat();
        const hosts = new Set(found.filter((peer) => peer.uid !== uid && peer.node !== node).map((peer) => peer.node));
        const known = await labelsOf(hosts, source);
        const values = [...hosts].flatMap((host) => known.get(host)?.[topologyKey] ?? []);
        return { topologyKey, values: [...new Set(values)].toSorted() };
      }),
    );
  }
}

async function labelsOf(
  hosts: ReadonlySet<string>,
  { nodes, allNodes }: PlaceSource,
): Promise<Map<string, UpdateNode["labels"]>> {
  const near = new Map(nodes.map(({ name, labels }) => [name, labels]));
  if ([...hosts].every((host) => near.has(host))) return near;
  return new Map((await allNodes()).map(({ name, labels }) => [name, labels]));
}

const peerKey = (namespace: string, selector: Repelled["selector"]): string =>
  JSON.stringify([namespace, selector ?? null]);

interface Peer {
  readonly uid: string;
  readonly node: string;
}

/** The pods that a selector finds on nodes, without those that are over or go. */
async function readPeers(key: string, source: PlaceSource): Promise<readonly Peer[]> {
  const [namespace, selector] = JSON.parse(key) as [string, LabelSelector | null];
  if (selector === null) return [];
  const query = {
    ...(namespace !== "" && { namespace }),
    labelSelector: selectorText(selector as Parameters<typeof selectorText>[0]),
  };
  return (await readAll({ resource: placedPods, query, read: readPeer }, source, source.call)).items.filter(
    ({ node }) => node !== "",
  );
}

/** Without a node if it no longer holds its place. */
function readPeer(pod: PlacedPod): Peer {
  const { uid, terminating, phase } = readBudgetPod(pod);
  return { uid, node: terminating || isOver({ phase }) ? "" : (pod.spec?.nodeName ?? "") };
}

/** A claim that is not bound will be bound on whichever node its pod runs. */
async function readClaim(key: string, { cluster, call }: PlaceSource): Promise<BoundClaim> {
  const [namespace = "", name = ""] = key.split("/");
  const claim = await cluster.get(volumeClaims, { namespace, name }, call).catch(absent);
  if (!claim) return { name, missing: true };
  const { volumeName = "" } = claim.spec ?? {};
  if (volumeName === "") return { name };
  const volume = await cluster.get(volumes, { name: volumeName }, call).catch(absent);
  return volume ? { name, ...readTerms(volume.spec) } : { name, missing: true };
}

function readTerms(spec: NonNullable<typeof volumes.shape>["spec"]): Pick<BoundClaim, "terms"> {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms;
  return terms ? { terms } : {};
}

/** Places for a pod that need no read of more nodes: one of them may be the node that it is on. */
const ENOUGH = 2;

async function judge(demands: Demands, { nodes, busy, allNodes }: PlaceSource): Promise<Judged[]> {
  const near = judgeNodes(demands, nodes);
  const free = near.filter(
    ([node, lacks]) => lacks === undefined && whyNotOpen(node) === undefined && !busy.has(node.name),
  );
  return free.length >= ENOUGH ? near : judgeNodes(demands, await allNodes());
}
