/** What somebody does between two calls of a process, or while it waits: for its turn, for other pods, or to be let through. */
import { type Draft, put } from "../../emulator/objects.ts";
import { CONFIGURATION, CONFIGURATIONS, withoutConditions } from "../deletions/shape.ts";
import { NAMESPACE, OTHER_GROUP, ZONE_TRACKER } from "../names.ts";
import {
  type Action,
  annotatePod,
  annotateZone,
  isList,
  isReconciler,
  pause,
  type People,
  PODS,
  podsIn,
  recreate,
  scaleZone,
  setOf,
  SETS,
  until,
} from "../person.ts";
import { CALM, type Shape, zoneObject } from "../shape.ts";
import type { Sent } from "../../emulator/in-process.ts";
import { amidBatch } from "./amid-batch.ts";
import type { Area } from "./incident.ts";
import { GROUPS_PATH, otherZone } from "./leases.ts";
import { afterwards, shrink, shrunk, sizeOf, twoZones, withOthers } from "./shrinking.ts";

const LEADER_READY = "grafana.com/rollout-upscale-only-when-leader-ready";
const LAST_DOWNSCALE = "grafana.com/last-downscale";
const SEEN = "example.com/seen";
const CONFIG_MAPS = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
const TROUBLED_MS = 240_000;
/** Longer than a run keeps its Lease. */
const FROZEN_MS = 30_000;
/** More groups than may be slow at once, by far: the last ones wait for three others. */
const GROUPS = 50;
/** Longer than a reconciler waits for an answer. */
const SLOW_MS = 14_000;

/** A reconciler writes a zone. */
const isWrite = (actor: string, { method, path }: Sent, zone: string): boolean =>
  isReconciler(actor) && method === "PATCH" && new RegExp(`/statefulsets/${zone}(?:\\?|$)`).test(path);

/** A deletion of a batch is answered late, and something happens before the next one. */
async function amidSlowBatch(people: People, act: (zone: string) => Promise<unknown>): Promise<void> {
  const end = people.world.disturb((actor, { method, path }) =>
    isReconciler(actor) && method === "DELETE" && path.includes("/pods/") ? { bodyLateMs: 1000 } : undefined,
  );
  await amidBatch(people, act);
  end();
}

/** A group of one zone whose pod never comes up. */
function otherGroup(shape: Shape, group: string): Draft {
  const text = JSON.stringify(otherZone({ ...shape, readyAfterMs: 3_600_000 }, `${group}-zone-a`));
  return JSON.parse(text.replaceAll(`"rollout-group":"${OTHER_GROUP}"`, `"rollout-group":"${group}"`)) as Draft;
}

const ACTS = {
  /** Followers grow only once their leader is ready, whose new pods take their time. */
  leaderComesUp: async (people) => {
    const [leader = "", ...others] = people.shape.zones;
    for (const zone of others) await annotateZone(people, zone, { [LEADER_READY]: "true" });
    await scaleZone(people, leader, sizeOf(people, leader) + 1, 3);
    await pause(people, people.shape.readyAfterMs + 30_000);
    for (const zone of others) await annotateZone(people, zone, { [LEADER_READY]: null });
  },
  /** The ConfigMap of downscales is deleted, and comes back just before a webhook would make it. */
  trackerMade: async (people) => {
    const { world } = people;
    const { ill, other } = twoZones(people);
    await shrink(people, ill);
    await until(people, () => world.store.get("configmaps", NAMESPACE, ZONE_TRACKER) !== undefined);
    const data = world.store.get("configmaps", NAMESPACE, ZONE_TRACKER)?.["data"] ?? {};
    const copy = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: ZONE_TRACKER, namespace: NAMESPACE }, data };
    await world.ask("human", "DELETE", `${CONFIG_MAPS}/${ZONE_TRACKER}`);
    const end = world.disturb((actor, { method, path }) => {
      const isMade = actor.startsWith("webhooks") && method === "POST" && path.startsWith(CONFIG_MAPS);
      if (isMade && !world.store.get("configmaps", NAMESPACE, ZONE_TRACKER)) world.store.create("configmaps", copy);
      return undefined;
    });
    await shrink(people, other);
    await afterwards(people, 20_000);
    end();
  },
  /** Others refuse a downscale, and the reconciler hears of it once its Lease is over. */
  refusedLate: (people) => {
    const { world, shape } = people;
    const zone = shape.zones.at(-1) ?? "";
    return withOthers(people, { zone, ms: 1 }, async () => {
      let isFrozen = false;
      const end = world.disturb((actor, sent) => {
        if (isFrozen || !isWrite(actor, sent, zone) || !sent.body.includes('"replicas"')) return undefined;
        isFrozen = true;
        world
          .processes()
          .find(({ name }) => name === actor)
          ?.freeze(FROZEN_MS);
        return undefined;
      });
      await shrunk(people, zone, () => pause(people, 45_000));
      end();
    });
  },
  /** Others pin the replicas of a zone, and somebody writes it before the time of its downscale is taken back. */
  pinnedAndWritten: (people) => {
    const { world, shape, draw } = people;
    const zone = shape.zones.at(-1) ?? "";
    return withOthers(people, { zone, ms: 1, replicas: sizeOf(people, zone) }, async () => {
      let left = draw.between(1, 2);
      const end = world.disturb((actor, sent) => {
        const found = setOf(people, zone);
        const isTakenBack = isWrite(actor, sent, zone) && sent.body.includes(LAST_DOWNSCALE);
        if (!found || left === 0 || !isTakenBack || sent.body.includes('"replicas"')) return undefined;
        world.store.update("statefulsets.apps", put(found, ["metadata", "annotations", SEEN], String(left--)));
        return undefined;
      });
      await shrunk(people, zone, () => pause(people, 45_000));
      end();
    });
  },
  /** Pods of the zone fall ill that were to stay for now. */
  illAmid: (people) =>
    amidSlowBatch(people, async (zone) => {
      const pods = podsIn(people, zone).slice(-2);
      for (const pod of pods) await annotatePod(people, pod, { "sim/ready": "false" });
      await pause(people, people.draw.between(10_000, 30_000));
      for (const pod of pods) await annotatePod(people, pod, { "sim/ready": null });
    }),
  /** Another zone is deleted, and stays until its pods have gone. */
  deletedAmid: (people) =>
    amidSlowBatch(people, async (taken) => {
      const { world, draw, shape } = people;
      const zone = draw.of(shape.zones.filter((other) => other !== taken));
      await world.ask("human", "DELETE", `${SETS}/${zone}`, { propagationPolicy: "Foreground" });
      await pause(people, draw.between(5000, 20_000));
      await recreate(people, SETS, zoneObject(shape, zone));
    }),
  /** The webhook of deletions is registered for all pods, and one goes that is in no group. */
  unlabelled: async (people) => {
    const { store, ask } = people.world;
    const found = store.get(CONFIGURATIONS, undefined, CONFIGURATION);
    if (!found) return;
    const { webhooks = [] } = withoutConditions(found) as { readonly webhooks?: readonly object[] };
    const all = webhooks.map((webhook) => ({ ...webhook, objectSelector: {} }));
    store.update(CONFIGURATIONS, { ...found, webhooks: all });
    const metadata = { name: "job", namespace: NAMESPACE };
    const spec = { containers: [{ name: "main", image: "job:1" }] };
    await recreate(people, PODS, { apiVersion: "v1", kind: "Pod", metadata, spec });
    await pause(people, 2000);
    await ask("human", "DELETE", `${PODS}/job`);
    const now = store.get(CONFIGURATIONS, undefined, CONFIGURATION);
    if (now) store.update(CONFIGURATIONS, { ...now, webhooks: found["webhooks"] });
    await ask("human", "DELETE", `${PODS}/job`);
  },
  /** Many groups whose pods come up slowly are made at once, and lists of pods are late; one of them is made anew. */
  manyGroups: async (people) => {
    const { world, shape, draw } = people;
    const kind = `group-${draw.below(1000)}`;
    const names = Array.from({ length: GROUPS }, (_, i) => `${kind}-${i}`);
    for (const name of names) await recreate(people, SETS, otherGroup(shape, name));
    const end = world.disturb((actor, sent) =>
      isReconciler(actor) && isList(sent, "pods") ? { bodyLateMs: SLOW_MS } : undefined,
    );
    await pause(people, 6 * SLOW_MS);
    const again = draw.of(names);
    await world.ask("human", "DELETE", `${SETS}/${again}-zone-a`);
    await recreate(people, SETS, otherGroup(shape, again));
    await pause(people, 2 * SLOW_MS);
    end();
    for (const name of names) {
      await world.ask("human", "DELETE", `${SETS}/${name}-zone-a`);
      await world.ask("human", "DELETE", `${GROUPS_PATH}/${name}`);
    }
  },
} satisfies Readonly<Record<string, Action>>;

type Act = keyof typeof ACTS;

function actsIn({ followers, prepared, tracker, budget, mirrored, secondsBetween, deletions }: Shape): readonly Act[] {
  const isFollowed = followers || mirrored !== undefined;
  return [
    "illAmid",
    "deletedAmid",
    "manyGroups",
    ...(followers ? (["leaderComesUp"] as const) : []),
    ...(tracker && prepared ? (["trackerMade"] as const) : []),
    ...(isFollowed && budget !== undefined ? (["refusedLate"] as const) : []),
    ...(isFollowed && !prepared && secondsBetween > 0 ? (["pinnedAndWritten"] as const) : []),
    ...(deletions ? (["unlabelled"] as const) : []),
  ];
}

const meanwhile: Action = (people) => ACTS[people.draw.of(actsIn(people.shape))](people);

export const MEANWHILE_AREA: Area = {
  shape(shape, draw) {
    const by = draw.of(["leader", "template"]);
    const prepared = draw.chance(0.4);
    return {
      followers: by === "leader",
      mirrored: by === "template" ? { delayMs: 0 } : undefined,
      prepared,
      tracker: prepared,
      secondsBetween: 15,
      replicas: draw.between(3, 4),
      maxUnavailable: draw.between(2, 3),
      accelerates: false,
      budget: draw.between(2, 3),
      partitioned: false,
      suspends: false,
      gate: undefined,
      windows: undefined,
      exitAfterMs: draw.of([1000, 8000]),
      readyAfterMs: 10_000,
      deletions: shape.deletions ?? (draw.chance(0.5) ? { conditions: false } : undefined),
      ...(draw.chance(0.6) && CALM),
      ...(draw.chance(0.3) && { callsPerSecond: draw.of([2, 5]) }),
      actions: Math.min(shape.actions, draw.of([0, 4, 8])),
      troubledMs: Math.max(shape.troubledMs, TROUBLED_MS),
    };
  },
  incidents: { meanwhile },
};
