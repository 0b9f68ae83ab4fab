/**
 * What is reserved while those who read it are slow, or for what does not happen: a webhook whose list is on its way while
 * others evict, and pods that a core budget holds back. Beside that, downscales as judged.ts has them.
 */
import { GROUP, NAMESPACE, ordinalOf, zoneOf } from "../names.ts";
import { type Action, drain, evict, isList, pause, type People, podOf, podsIn, until } from "../person.ts";
import { delayMs, CALM, type Shape } from "../shape.ts";
import { freshPeers } from "./fresh-peers.ts";
import type { Area } from "./incident.ts";
import { JUDGED } from "./judged.ts";

const CORE_BUDGETS = `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`;
const TROUBLED_MS = 300_000;

/** Meanwhile a core budget refuses each eviction that ours allows. */
async function heldBack(people: People, act: () => Promise<unknown>): Promise<void> {
  const metadata = { name: `held-${people.draw.below(1_000_000)}`, namespace: NAMESPACE };
  const spec = { maxUnavailable: 0, selector: { matchLabels: { app: GROUP } } };
  const object = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata, spec };
  await people.world.ask("human", "POST", CORE_BUDGETS, object);
  await act();
  await people.world.ask("human", "DELETE", `${CORE_BUDGETS}/${metadata.name}`);
}

/** A pod, its peer of another zone, and the others of that zone. */
function pairs(people: People) {
  const { draw, shape } = people;
  const pods = podsIn(people);
  const name = pods.length > 0 ? draw.of(pods) : "";
  const zones = shape.zones.filter((zone) => zone !== zoneOf(name));
  const others = zones.length > 0 ? podsIn(people, draw.of(zones)) : [];
  const peer = others.find((other) => ordinalOf(other) === ordinalOf(name));
  return peer === undefined ? undefined : { name, peer, others: others.filter((other) => other !== peer) };
}

/** What ours has let go stays, and a pod of another zone is to go once nothing is reserved any more. */
const heldOnce: Action = async (people) => {
  const found = pairs(people);
  if (!found) return;
  await heldBack(people, () => evict(people, found.name));
  await pause(people, people.draw.between(170_000, 225_000));
  await evict(people, found.peer);
};

const ACTS = {
  heldOnce,
  /** The list of pods is on its way to a webhook; meanwhile another one lets a pod of another zone go, and a second one. */
  slowReader: async (people) => {
    const { world, shape } = people;
    const found = pairs(people);
    if (!found) return;
    const { name, peer, others } = found;
    const uid = podOf(people, peer)?.metadata.uid;
    let slow = "";
    const end = world.disturb((actor, sent) => {
      if (!actor.startsWith("webhooks") || !isList(sent, "pods")) return undefined;
      slow ||= actor;
      return actor === slow ? { bodyLateMs: shape.exitAfterMs + 2000 } : undefined;
    });
    const evicted = evict(people, name);
    await until(people, () => slow !== "", { ms: 5000, stepMs: 20 });
    for (const one of [peer, peer, peer]) if ((await evict(people, one)).status < 300) break;
    await until(people, () => podOf(people, peer)?.metadata.uid !== uid, { ms: shape.exitAfterMs + 2000, stepMs: 20 });
    for (const other of others.slice(0, 2)) if ((await evict(people, other)).status < 300) break;
    end();
    await evicted;
  },
  /** What ours has let go is held back for longer than a reservation lasts, and asked for again and again. */
  heldLong: (people) =>
    heldBack(people, async () => {
      const pods = podsIn(people);
      if (pods.length > 0) void drain(people, people.draw.of(pods));
      await pause(people, people.draw.between(100_000, 130_000));
    }),
  /** Peers of a pod that is to go are ready, and nothing says since when. */
  untimed: (people) => freshPeers(people, "untimed"),
} satisfies Readonly<Record<string, Action>>;

const incidents: Readonly<Record<string, Action>> = {
  drained: (people) => ACTS[people.draw.chance(0.7) && delayMs(people.shape) > 0 ? "untimed" : "slowReader"](people),
  held: (people) => ACTS[people.draw.of(["heldLong", "heldOnce"] as const)](people),
  ...JUDGED,
};

export const RESERVATIONS_AREA: Area = {
  shape(shape, draw) {
    if (shape.nodes) return undefined;
    const by = draw.of(["people", "leader", "template", "template"]);
    const partitioned = draw.chance(0.6);
    const delaySeconds = partitioned && draw.chance(0.7) ? 30 : 0;
    const own: Partial<Shape> = {
      evictions: { validating: false, older: draw.chance(0.3), delaySeconds },
      downscales: { asOriginal: false },
      budget: partitioned ? 1 : draw.between(1, 2),
      partitioned,
      replicas: draw.between(2, 4),
      webhookServers: draw.between(2, 3),
      followers: by === "leader",
      mirrored: by === "template" ? { delayMs: 0 } : undefined,
      prepared: draw.chance(0.5),
      secondsBetween: by === "leader" || draw.chance(0.5) ? 15 : 0,
    };
    const calm: Partial<Shape> = {
      hasDefaults: true,
      accelerates: false,
      gate: undefined,
      windows: undefined,
      certificate: undefined,
      ignore: false,
      skewMs: 0,
      ...CALM,
      actions: Math.min(shape.actions, draw.of([0, 0, 3])),
      troubledMs: Math.max(shape.troubledMs, TROUBLED_MS),
    };
    return { ...own, ...calm };
  },
  incidents,
};
