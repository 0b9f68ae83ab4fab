/**
 * What is reserved while those who reserve, or read it, are slow, blind or dead: webhooks whose list is on its way while
 * others evict, reconcilers that die as their write is judged, and what is reserved for what never happens.
 */
import { fieldsOf } from "../../emulator/objects.ts";
import type { Sent } from "../../emulator/in-process.ts";
import { BUDGETS, GROUP, LEASES, NAMESPACE, ordinalOf, zoneOf } from "../names.ts";
import { callers } from "../network.ts";
import {
  type Action,
  drain,
  pause,
  type People,
  PODS,
  podOf,
  podsIn,
  scale,
  scaleZone,
  TEMPLATES_PATH,
  until,
  without,
} from "../person.ts";
import { reservedOn } from "../oracles/stored.ts";
import { delayMs, NO_FAULTS, type Shape } from "../shape.ts";
import { freshPeers } from "./fresh-peers.ts";
import type { Area } from "./incident.ts";
import { afterwards, label, mirroring, newImage, shrink, sizeOf, twoZones, withOthers, withPods } from "./shrinking.ts";

const CORE_BUDGETS = `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`;
const [NO_DOWNSCALE, NO_DOWNSCALE_WEBHOOK] = ["grafana.com/no-downscale", "no-downscale-zonewise"];
const DOWNSCALE_LEASE = /^zonewise-downscale-/;
const TROUBLED_MS = 300_000;

const isList = ({ method, path }: Sent, plural: string): boolean =>
  method === "GET" && new RegExp(`/${plural}\\?`).test(path) && !path.includes("watch=");

/** Asks once for the eviction of a pod. */
const evict = ({ world }: People, name: string) =>
  world.ask("drainer", "POST", `${PODS}/${name}/eviction`, {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name, namespace: NAMESPACE },
  });

/** Meanwhile a core budget refuses each eviction that ours allows. */
async function heldBack(people: People, act: () => Promise<unknown>): Promise<void> {
  const metadata = { name: `held-${people.draw.below(1_000_000)}`, namespace: NAMESPACE };
  const spec = { maxUnavailable: 0, selector: { matchLabels: { app: GROUP } } };
  const object = { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata, spec };
  await people.world.ask("human", "POST", CORE_BUDGETS, object);
  await act();
  await people.world.ask("human", "DELETE", `${CORE_BUDGETS}/${metadata.name}`);
}

/** Resolves once a caller of this kind has written what is reserved for a downscale. */
function reservedBy({ world, schedule }: People, kind: string): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      end();
      resolve();
    };
    const end = world.store.subscribe(({ resource, object }) => {
      const isTheirs = callers.getStore()?.actor.startsWith(kind) === true;
      const isKept = resource === BUDGETS || resource === LEASES;
      if (isKept && isTheirs && Object.keys(reservedOn(object)).some((key) => key.endsWith("+"))) done();
    });
    schedule.after(60_000, done);
  });
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

/** A zone is to have so many pods, by whoever scales. */
const resize = (people: People, zone: string, replicas: number): Promise<unknown> =>
  people.shape.mirrored
    ? people.world.ask("autoscaler", "PATCH", `${TEMPLATES_PATH}/${GROUP}/scale`, { spec: { replicas } })
    : scaleZone(people, zone, replicas, 3);

/** While the zone is to have fewer pods. */
async function shrunk(people: People, zone: string, act: () => Promise<unknown>, by = 1): Promise<void> {
  const { shape } = people;
  const first = shape.followers ? (shape.zones[0] ?? zone) : zone;
  const replicas = sizeOf(people, first);
  await shrink(people, zone, { by });
  await act();
  await resize(people, first, replicas);
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
  /** A list of the zones is on its way; meanwhile one of them grows, and is to shrink to what it was. */
  oldList: async (people) => {
    const { world } = people;
    const { other: zone } = twoZones(people);
    const size = sizeOf(people, zone);
    await newImage(people, zone);
    await pause(people, people.draw.between(500, 6000));
    let isListed = false;
    const end = world.disturb((actor, sent) => {
      if (!actor.startsWith("reconciler") || !isList(sent, "statefulsets")) return undefined;
      isListed = true;
      return { bodyLateMs: 6000 };
    });
    await until(people, () => isListed, { stepMs: 20 });
    await withOthers(people, { zone, ms: 10_000 }, async () => {
      await scale(people, zone, size + 1);
      await scale(people, zone, size);
    });
    end();
    await scale(people, zone, size);
  },
  /** A reconciler dies once a webhook has reserved what it has reserved as well, and a pod refuses to be prepared. */
  diesJudged: async (people) => {
    const { world, shape } = people;
    const zone = shape.zones.at(-1) ?? "";
    const judged = reservedBy(people, "webhooks");
    await withPods(people, zone, { "sim/refuses": "true", "sim/answer-after-ms": "1500" }, async () => {
      await shrunk(people, zone, async () => {
        await judged;
        for (const process of world.processes()) if (process.name.startsWith("reconciler")) process.kill();
        await pause(people, 30_000);
      });
    });
  },
  /** Reconcilers cannot read budgets, and a zone is to shrink. */
  blind: async (people) => {
    const { world, draw, shape } = people;
    world.fail("reconciler LIST zoneawarepoddisruptionbudgets", draw.between(20_000, 50_000));
    await shrunk(people, shape.zones.at(-1) ?? "", () => afterwards(people, 20_000));
  },
  /** A reconciler reads slowly once it has the Lease of downscales. */
  slowUnderLease: async (people) => {
    const { world, draw, shape } = people;
    const bodyLateMs = draw.between(1000, 3000);
    const isHeld = (): boolean =>
      world.store
        .list(LEASES, NAMESPACE)
        .some(
          ({ metadata, spec }) =>
            DOWNSCALE_LEASE.test(metadata.name) &&
            String(fieldsOf(spec)["holderIdentity"] ?? "").startsWith("reconciler_"),
        );
    const end = world.disturb((actor, { method, path }) =>
      actor.startsWith("reconciler") && method === "GET" && !path.includes("watch=") && isHeld()
        ? { bodyLateMs }
        : undefined,
    );
    await shrunk(people, shape.zones.at(-1) ?? "", () => pause(people, 40_000));
    end();
  },
  /** A zone takes its replicas from another one, which grows while the StatefulSet controller stands still. */
  mirrorsSet: async (people) => {
    const { draw, world, shape } = people;
    const [from = "", zone = ""] = shape.zones;
    const size = sizeOf(people, from);
    await mirroring(people, { zone, from }, async () => {
      world.stall("statefulSets", draw.between(10_000, 25_000));
      await resize(people, from, size + 1);
      await afterwards(people, 20_000);
      await resize(people, from, size);
      await pause(people, 15_000);
    });
    if (!shape.mirrored) await scaleZone(people, zone, size, 3);
  },
  /** Others give a zone another number than was asked for, or leave it as it is. */
  othersPin: async (people) => {
    const { draw, shape } = people;
    const zone = shape.zones.at(-1) ?? "";
    const replicas = sizeOf(people, zone) - draw.below(2);
    await withOthers(people, { zone, ms: 1, replicas }, () => shrunk(people, zone, () => pause(people, 45_000), 2));
  },
  /** A zone must not shrink, by its label, and the webhook that refuses it is not registered. */
  pinnedUnjudged: async (people) => {
    const { shape } = people;
    const zone = shape.zones.at(-1) ?? "";
    await label(people, zone, { [NO_DOWNSCALE]: "true" });
    await without(people, ["validatingwebhookconfigurations", NO_DOWNSCALE_WEBHOOK], () =>
      shrunk(people, zone, () => afterwards(people, 20_000)),
    );
    await label(people, zone, { [NO_DOWNSCALE]: null });
  },
  /** Peers of a pod that is to go are ready, and nothing says since when. */
  untimed: (people) => freshPeers(people, "untimed"),
} satisfies Readonly<Record<string, Action>>;

/** The acts that show something in this world. */
function scalingIn({ prepared, followers, mirrored }: Shape): readonly (keyof typeof ACTS)[] {
  if (!followers && !mirrored) return prepared ? ["oldList", "mirrorsSet"] : ["mirrorsSet"];
  return prepared ? ["oldList", "diesJudged", "pinnedUnjudged", "othersPin"] : ["blind", "slowUnderLease", "othersPin"];
}

const incidents: Readonly<Record<string, Action>> = {
  drained: (people) => ACTS[people.draw.chance(0.7) && delayMs(people.shape) > 0 ? "untimed" : "slowReader"](people),
  held: (people) => ACTS[people.draw.of(["heldLong", "heldOnce"] as const)](people),
  scaling: (people) => ACTS[people.draw.of(scalingIn(people.shape))](people),
};

export const RESERVATIONS_AREA: Area = {
  shape(shape, draw) {
    if (shape.nodes) return undefined;
    const by = draw.of(["people", "leader", "template", "template"]);
    const partitioned = draw.chance(0.6);
    const delaySeconds = partitioned && draw.chance(0.7) ? 30 : 0;
    const own: Partial<Shape> = {
      evictions: { validating: false, older: draw.chance(0.3), delaySeconds, aheadMs: 0 },
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
      accelerates: false,
      gate: undefined,
      windows: undefined,
      certificate: undefined,
      ignore: false,
      skewMs: 0,
      firstCalls: undefined,
      answers: undefined,
      faults: NO_FAULTS,
      actions: Math.min(shape.actions, draw.of([0, 0, 3])),
      troubledMs: Math.max(shape.troubledMs, TROUBLED_MS),
    };
    return { ...own, ...calm };
  },
  incidents,
};
