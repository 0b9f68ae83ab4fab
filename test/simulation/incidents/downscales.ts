/** Zones that shrink while another one is in trouble that lasts, or while others have a say in it. */
import { type Draft, dig, put, timestamp } from "../../emulator/objects.ts";
import { GROUP, NAMESPACE, ZONE_TRACKER } from "../names.ts";
import {
  type Action,
  annotatePod,
  annotateZone,
  setOf,
  pause,
  PODS,
  recreate,
  scaleZone,
  SETS,
  TEMPLATES_PATH,
} from "../person.ts";
import { type Shape, zoneObject } from "../shape.ts";
import type { Area } from "./incident.ts";
import {
  afterwards,
  deletePod,
  disturb,
  label,
  mirroring,
  newImage,
  shrink,
  sizeOf,
  twoZones,
  underQuota,
  withOthers,
  withPods,
} from "./shrinking.ts";

const PAUSED = "grafana.com/rollout-paused";
const LAST_DOWNSCALE = "grafana.com/last-downscale";
const [NO_DOWNSCALE, PREPARE] = ["grafana.com/no-downscale", "grafana.com/prepare-downscale"];
/** In which a pod is deleted, or a write stored. */
const SOON_MS = 300;
const TROUBLED_MS = 240_000;

const incidents: Readonly<Record<string, Action>> = {
  /** A pod goes, and none can be made: a quota is used up. */
  quota: (people) => {
    const { ill, other } = twoZones(people);
    return underQuota(people, async () => {
      await deletePod(people, `${ill}-${people.draw.chance(0.5) ? 0 : sizeOf(people, ill) - 1}`);
      await pause(people, people.shape.exitAfterMs + SOON_MS);
      await disturb(people, other);
      await afterwards(people, 20_000);
    });
  },
  /** A zone shrinks, and its controller cannot delete the pods; perhaps another pod of it goes and cannot come back. */
  keptSurplus: (people) => {
    const { draw, shape } = people;
    // Others shrink after it.
    const isFirst = shape.followers || shape.mirrored !== undefined;
    const ill = isFirst ? (shape.zones[0] ?? "") : twoZones(people).ill;
    const other = shape.zones.find((zone) => zone !== ill) ?? ill;
    const keep = (): Promise<void> =>
      withPods(people, ill, { "sim/kept": "true" }, async () => {
        if (shape.mirrored) await shrink(people, ill);
        else await scaleZone(people, ill, Math.max(1, sizeOf(people, ill) - 1), 2);
        await pause(people, SOON_MS);
        if (draw.chance(0.4)) await deletePod(people, `${ill}-0`);
        await pause(people, draw.of([SOON_MS, shape.exitAfterMs + SOON_MS]));
        await disturb(people, other);
        await afterwards(people, 20_000);
      });
    return draw.chance(0.5) ? underQuota(people, keep) : keep();
  },
  /** The StatefulSet controller stands still: statuses are older than specs, and than pods. */
  slowController: async (people) => {
    const { draw, world, shape } = people;
    const { ill, other } = twoZones(people);
    const pod = `${ill}-${draw.below(sizeOf(people, ill))}`;
    const [isIll, rolls] = [draw.chance(0.4), draw.chance(0.5)];
    if (isIll) await annotatePod(people, pod, { "sim/ready": "false" });
    // Its rollout waits for what is to come.
    await annotateZone(people, other, { [PAUSED]: "true" });
    if (rolls) await newImage(people, other);
    await pause(people, SOON_MS);
    world.stall("statefulSets", draw.between(20_000, 40_000));
    if (isIll) await annotatePod(people, pod, { "sim/ready": null });
    else if (rolls || draw.chance(0.4)) await deletePod(people, pod);
    else await newImage(people, ill);
    await pause(people, isIll || rolls ? shape.readyAfterMs + shape.exitAfterMs + SOON_MS : SOON_MS);
    await annotateZone(people, other, { [PAUSED]: null });
    if (!rolls) await shrink(people, other);
  },
  /** What is admitted is refused by others, now or again and again; meanwhile another zone wants to shrink. */
  othersRefuse: (people) => {
    const { draw } = people;
    const { ill, other } = twoZones(people);
    const others = { zone: ill, ms: draw.of([1, 3000, 15_000]) };
    return withOthers(people, others, async () => {
      const tried = scaleZone(people, ill, Math.max(1, sizeOf(people, ill) - 1), draw.of([1, 1, 3, 12]));
      await pause(people, draw.of([2000, 20_000, 50_000, 75_000]) + draw.below(12_000));
      await shrink(people, other);
      await tried;
      await pause(people, draw.of([1000, 90_000]));
    });
  },
  /** Others give a zone another number than was asked for, or leave it as it is. */
  othersChange: (people) => {
    const { draw, shape } = people;
    const [first = "", ...others] = shape.zones;
    const zone = draw.of(shape.followers && others.length > 0 ? others : shape.zones);
    const size = sizeOf(people, zone);
    const replicas = draw.chance(0.4) ? size : Math.max(1, size - 1);
    return withOthers(people, { zone, ms: draw.of([1, 1000]), replicas }, async () => {
      await shrink(people, shape.followers ? first : zone, { by: 2, least: 0 });
      await pause(people, draw.between(5000, 20_000));
    });
  },
  /** Pods refuse their preparation. */
  refusingPods: (people) => {
    const { other: zone } = twoZones(people);
    return withPods(people, zone, { "sim/refuses": "true" }, async () => {
      await shrink(people, zone);
      await pause(people, people.draw.between(10_000, 70_000));
    });
  },
  /** Pods answer slowly, and the template grows just as they have been told for long enough. */
  templateTurns: async (people) => {
    const { draw, shape, world, schedule } = people;
    if (!shape.mirrored) return void (await incidents["othersChange"]?.(people));
    const zone = shape.zones[0] ?? "";
    const size = sizeOf(people, zone);
    const slow = { "sim/answer-after-ms": "6000" };
    for (const one of shape.zones.slice(1))
      for (let i = 0; i < size; i++) await annotatePod(people, `${one}-${i}`, slow);
    await withPods(people, zone, slow, async () => {
      await shrink(people, zone);
      const uid = world.store.get("pods", NAMESPACE, `${zone}-${size - 1}`)?.metadata.uid ?? "";
      for (let waits = 0; waits < 60 && !world.leaving.has(uid); waits++) await pause(people, 500);
      const overAt = (world.leaving.get(uid) ?? schedule.now()) + (shape.mirrored?.delayMs ?? 0);
      await pause(people, Math.max(1, overAt - schedule.now() + draw.between(-3000, 5000)));
      await world.ask("autoscaler", "PATCH", `${TEMPLATES_PATH}/${GROUP}/scale`, { spec: { replicas: size } });
      await pause(people, 10_000);
    });
  },
  /** The time of a zone's last downscale is written by somebody: nobody can read it, or it is now. */
  writtenTime: async (people) => {
    const { draw, world, schedule, shape } = people;
    const { ill, other } = twoZones(people);
    const now = schedule.now();
    // Nobody can read it, it is now, or the time that others have to wait is over in a second.
    const over = timestamp(now - 1000 * shape.secondsBetween + 999);
    const time = draw.of(["yesterday", "yesterday", timestamp(now), over]);
    const before = dig(setOf(people, ill), "metadata", "annotations", LAST_DOWNSCALE);
    const tracker = world.store.get("configmaps", NAMESPACE, ZONE_TRACKER);
    const isTracked = tracker !== undefined && draw.chance(0.4);
    if (isTracked)
      world.store.update("configmaps", put(tracker, ["data", ill], JSON.stringify({ lastDownscaled: time })));
    else await annotateZone(people, ill, { [LAST_DOWNSCALE]: time });
    await shrink(people, other);
    await afterwards(people, 20_000);
    if (isTracked)
      world.store.update(
        "configmaps",
        put(world.store.get("configmaps", NAMESPACE, ZONE_TRACKER) ?? tracker, ["data", ill], undefined),
      );
    else await annotateZone(people, ill, { [LAST_DOWNSCALE]: before ?? null });
  },
  /** A zone must not shrink, by its label; who takes the label away in the same write is refused, too. */
  pinnedZone: async (people) => {
    const { draw, world } = people;
    const { other: zone } = twoZones(people);
    await label(people, zone, { [NO_DOWNSCALE]: "true" });
    const replicas = Math.max(1, sizeOf(people, zone) - 1);
    const labels = { [NO_DOWNSCALE]: null, ...(draw.chance(0.5) && { [PREPARE]: null }) };
    await world.ask("human", "PATCH", `${SETS}/${zone}/scale`, { spec: { replicas } });
    // Otherwise a policy refuses that, which this API server does not have.
    if (people.shape.downscales?.asOriginal)
      await world.ask("human", "PATCH", `${SETS}/${zone}`, {
        ...(draw.chance(0.7) && { metadata: { labels } }),
        spec: { replicas },
      });
    await shrink(people, zone);
    await afterwards(people, 10_000);
    await label(people, zone, { [NO_DOWNSCALE]: null, ...(people.shape.prepared && { [PREPARE]: "true" }) });
  },
  /** Webhooks cannot read pods, and a zone is to shrink while another one rolls. */
  blindWebhooks: async (people) => {
    const { ill, other } = twoZones(people);
    await newImage(people, ill);
    people.world.fail("webhooks LIST pods", people.draw.between(10_000, 30_000));
    await shrink(people, other);
  },
  /** Whoever only tries takes nothing; and of a prepared zone the first pod would go with another first ordinal. */
  attempts: async (people) => {
    const { draw, world, shape } = people;
    const patch = (path: string, spec: object): Promise<unknown> =>
      world.ask("human", "PATCH", `${SETS}/${path}`, { spec });
    for (const zone of shape.zones) await patch(`${zone}${draw.of(["", "/scale"])}?dryRun=All`, { replicas: 1 });
    if (shape.prepared) await patch(draw.of(shape.zones), { ordinals: { start: draw.of([1, 2]) } });
    await incidents["stranger"]?.(people);
  },
  /** A zone takes its replicas from a StatefulSet, whose status is its controller's. */
  mirrorsSet: async (people) => {
    const { shape } = people;
    if (shape.followers) return void (await incidents["writtenTime"]?.(people));
    const [from = "", zone = ""] = shape.zones;
    await mirroring(people, { zone, from }, async () => {
      await shrink(people, from);
      await afterwards(people, 20_000);
    });
  },
  /** A pod with a zone's labels that no StatefulSet controls. */
  stranger: async (people) => {
    const { draw, shape, world } = people;
    const { ill, other } = twoZones(people);
    const found = dig(zoneObject(shape, ill), "spec", "template") as Draft & { readonly spec: object };
    const annotations = { ...found.metadata.annotations, ...(draw.chance(0.5) && { "sim/ready": "false" }) };
    const metadata = { ...found.metadata, annotations, name: `${ill}-debug`, namespace: NAMESPACE };
    await recreate(people, PODS, { apiVersion: "v1", kind: "Pod", metadata, spec: found.spec });
    await newImage(people, draw.of([ill, other]));
    if (draw.chance(0.5)) await shrink(people, other);
    await afterwards(people, 20_000);
    await world.ask("human", "DELETE", `${PODS}/${ill}-debug`);
  },
  /** The pod that is to go has just fallen ill, and so has one of another zone. */
  illTogether: async (people) => {
    const { draw } = people;
    const { ill, other } = twoZones(people);
    const kind = draw.of(["sim/ready", "sim/ready", "sim/crash"]);
    const size = sizeOf(people, other);
    const pods = [
      `${ill}-${draw.of([0, sizeOf(people, ill) - 1])}`,
      ...(draw.chance(0.7) ? [`${other}-${size - 1}`] : []),
    ];
    for (const pod of pods) await annotatePod(people, pod, { [kind]: kind === "sim/ready" ? "false" : "true" });
    await pause(people, draw.between(SOON_MS, 20_000));
    await shrink(people, other, { by: draw.between(1, 2) });
    await afterwards(people, 20_000);
    for (const pod of pods) await annotatePod(people, pod, { [kind]: null });
  },
  /** The Service of a zone's pods has a name that is no label of a host. */
  wrongService: async (people) => {
    const { world, shape } = people;
    const { other: zone } = twoZones(people);
    const make = async (serviceName: string): Promise<void> => {
      await world.ask("human", "DELETE", `${SETS}/${zone}`, { propagationPolicy: "Orphan" });
      await recreate(people, SETS, put(zoneObject(shape, zone), ["spec", "serviceName"], serviceName));
    };
    await make("elsewhere.example");
    await pause(people, 2000);
    await shrink(people, zone);
    await afterwards(people, 20_000);
    await make(zone);
  },
};

export const DOWNSCALES_AREA: Area = {
  shape: (shape, draw) => {
    if (shape.nodes) return undefined;
    const by = draw.of(["people", "leader", "template"]);
    const prepared = draw.chance(0.5);
    const followers = by === "leader";
    const faults = Object.fromEntries(Object.keys(shape.faults).map((fault) => [fault, 0])) as Shape["faults"];
    return {
      downscales: { asOriginal: draw.chance(0.6) },
      replicas: draw.between(2, 4),
      followers,
      prepared,
      accelerates: false,
      mirrored: by === "template" ? { delayMs: draw.of([0, 60_000, 60_000]) } : undefined,
      secondsBetween: (followers && prepared) || draw.chance(0.4) ? 60 : 0,
      budget: draw.chance(0.5) ? 1 : undefined,
      gate: undefined,
      windows: undefined,
      certificate: undefined,
      ignore: false,
      skewMs: 0,
      firstCalls: undefined,
      answers: undefined,
      faults: draw.chance(0.7) ? faults : shape.faults,
      actions: Math.min(shape.actions, draw.of([0, 3, 8])),
      troubledMs: Math.max(shape.troubledMs, TROUBLED_MS),
    };
  },
  incidents,
};
