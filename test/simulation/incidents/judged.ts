/**
 * Zones that are to shrink while those who judge that are slow, blind or dead, or judge one zone and not the other; and
 * zones whose replicas, times or pods others keep as they are.
 */
import { dig, fieldsOf, textOf, timestamp } from "../../emulator/objects.ts";
import { BUDGETS_PATH } from "../budgets.ts";
import { BUDGET, BUDGETS, LEASES, NAMESPACE } from "../names.ts";
import { callers } from "../network.ts";
import { downscaleOf, reservedOn } from "../oracles/stored.ts";
import {
  type Action,
  annotateZone,
  isList,
  killReconcilers,
  pause,
  type People,
  recreate,
  scale,
  scaleZone,
  setOf,
  until,
  without,
} from "../person.ts";
import { budgetObject, type Shape } from "../shape.ts";
import {
  afterwards,
  label,
  mirroring,
  newImage,
  resize,
  shrunk,
  sizeOf,
  twoZones,
  withOthers,
  withPods,
} from "./shrinking.ts";

const [NO_DOWNSCALE, PREPARE] = ["grafana.com/no-downscale", "grafana.com/prepare-downscale"];
const NO_DOWNSCALE_WEBHOOK = ["validatingwebhookconfigurations", "no-downscale-zonewise"] as const;
const LAST_DOWNSCALE = "grafana.com/last-downscale";
const DOWNSCALE_LEASE = /^zonewise-downscale-/;
const SECOND_MS = 1000;
/** How often an incident is tried that needs luck. */
const ROUNDS = 3;

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
      if (isKept && isTheirs && Object.entries(reservedOn(object)).some((entry) => downscaleOf(...entry))) done();
    });
    schedule.after(60_000, done);
  });
}

/** Meanwhile lists of zones are on their way to reconcilers for long, one of them from before. */
async function whileListed(people: People, act: () => Promise<unknown>): Promise<void> {
  let isListed = false;
  const end = people.world.disturb((actor, sent) => {
    if (!actor.startsWith("reconciler") || !isList(sent, "statefulsets")) return undefined;
    isListed = true;
    return { bodyLateMs: 6000 };
  });
  await until(people, () => isListed, { stepMs: 20 });
  await act();
  end();
}

export const JUDGED_ACTS = {
  /** A list of the zones is on its way; meanwhile one of them grows, and is to shrink to what it was. */
  oldList: async (people) => {
    const { other: zone } = twoZones(people);
    const size = sizeOf(people, zone);
    for (let round = 0; round < ROUNDS; round++) {
      // Zones that are not settled have their pods and budgets read.
      await newImage(people, zone);
      await pause(people, people.draw.between(500, 6000));
      await whileListed(people, () =>
        withOthers(people, { zone, ms: 10_000 }, async () => {
          await scale(people, zone, size + 1);
          await scale(people, zone, size);
        }),
      );
      await scale(people, zone, size);
    }
  },
  /** A reconciler dies once a webhook has reserved what it has reserved as well, and a pod refuses to be prepared. */
  diesJudged: async (people) => {
    const zone = people.shape.zones.at(-1) ?? "";
    const judged = reservedBy(people, "webhooks");
    await withPods(people, zone, { "sim/refuses": "true", "sim/answer-after-ms": "1500" }, async () => {
      await shrunk(people, zone, async () => {
        await judged;
        killReconcilers(people);
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
            DOWNSCALE_LEASE.test(metadata.name) && textOf(fieldsOf(spec)["holderIdentity"])?.startsWith("reconciler_"),
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
    await without(people, NO_DOWNSCALE_WEBHOOK, () => shrunk(people, zone, () => afterwards(people, 20_000)));
    await label(people, zone, { [NO_DOWNSCALE]: null });
  },
  /** Others refuse each downscale of a zone, which is asked for again and again. */
  neverStored: (people) => {
    const { other: zone } = twoZones(people);
    const replicas = Math.max(0, sizeOf(people, zone) - 1);
    return withOthers(people, { zone, ms: 1 }, () => scaleZone(people, zone, replicas, 10));
  },
  /** Another zone's downscale is admitted and not stored yet, and no webhook judges this one. */
  halfJudged: async (people) => {
    const { zones } = people.shape;
    const [first = "", last = ""] = [zones[0], zones.at(-1)];
    await label(people, last, { [PREPARE]: null });
    await withOthers(people, { zone: first, ms: 12_000 }, async () => {
      const tried = scale(people, first, Math.max(1, sizeOf(people, first) - 1));
      await pause(people, 500);
      await shrunk(people, last, () => tried);
    });
    await label(people, last, { [PREPARE]: "true" });
  },
  /** The time that others wait for after a downscale is over in the second that has begun. */
  almostOver: async (people) => {
    const { schedule, shape, draw } = people;
    const { ill, other } = twoZones(people);
    const before = dig(setOf(people, ill), "metadata", "annotations", LAST_DOWNSCALE);
    await pause(people, SECOND_MS - (schedule.now() % SECOND_MS) + draw.between(100, 600));
    const time = timestamp(schedule.now() + SECOND_MS - SECOND_MS * shape.secondsBetween);
    await annotateZone(people, ill, { [LAST_DOWNSCALE]: time });
    const size = sizeOf(people, other);
    await scale(people, other, Math.max(0, size - 1));
    await afterwards(people);
    await annotateZone(people, ill, { [LAST_DOWNSCALE]: before ?? null });
    await scaleZone(people, other, size, 3);
  },
  /** The pods that a zone has lost by its number still run, and no budget counts them. */
  surplusStays: async (people) => {
    const { world, shape } = people;
    const [ill = "", other = ""] = [shape.zones[0], shape.zones.at(-1)];
    const size = sizeOf(people, ill);
    await world.ask("human", "DELETE", `${BUDGETS_PATH}/${BUDGET}`);
    await withPods(people, ill, { "sim/kept": "true" }, async () => {
      await scaleZone(people, ill, Math.max(1, size - 1), 2);
      await pause(people, SECOND_MS * (shape.secondsBetween + 2));
      await scale(people, other, Math.max(0, sizeOf(people, other) - 1));
      await pause(people, SECOND_MS);
    });
    await scaleZone(people, ill, size, 3);
    await scaleZone(people, other, size, 3);
    await recreate(people, BUDGETS_PATH, budgetObject(shape));
  },
} satisfies Readonly<Record<string, Action>>;

type Act = keyof typeof JUDGED_ACTS;

/** The acts about who scales that show something in this world. */
function scalingIn({ prepared, followers, mirrored }: Shape): readonly Act[] {
  if (!followers && !mirrored) return ["mirrorsSet"];
  return prepared
    ? ["diesJudged", "diesJudged", "pinnedUnjudged", "othersPin"]
    : ["blind", "slowUnderLease", "othersPin"];
}

/** The same of those about webhooks, which judge the zones of some worlds. */
function judgingIn(shape: Shape): readonly Act[] {
  const { prepared, mirrored, secondsBetween } = shape;
  if (!prepared) return scalingIn(shape);
  const times = secondsBetween > 0 ? (["almostOver"] as const) : [];
  return ["oldList", "neverStored", ...times, mirrored ? "halfJudged" : "surplusStays"];
}

const oneOf =
  (actsIn: (shape: Shape) => readonly Act[]): Action =>
  (people) =>
    JUDGED_ACTS[people.draw.of(actsIn(people.shape))](people);

export const JUDGED = { scaling: oneOf(scalingIn), judging: oneOf(judgingIn) };
