/** What people do once a reconciler has taken the first pod of a batch. */
import { timestamp } from "../../emulator/objects.ts";
import { zoneOf } from "../names.ts";
import { callers } from "../network.ts";
import {
  type Action,
  annotatePod,
  annotateZone,
  changeTemplate,
  PATIENCE_MS,
  pause,
  type People,
  replicasOf,
  scale,
} from "../person.ts";
import { FREEZES } from "../windows/shape.ts";

const PAUSED = "grafana.com/rollout-paused";
const HOUR_MS = 3_600_000;

/** The zone of which a reconciler takes the next pod, as it does. */
export function nextTaken({ world, schedule, shape }: People): Promise<string | undefined> {
  return new Promise((resolve) => {
    const end = world.store.subscribe(({ type, resource, object, previous }) => {
      const zone = zoneOf(object.metadata.name);
      const begins = type === "MODIFIED" && object.metadata.deletionTimestamp && !previous?.metadata.deletionTimestamp;
      if (resource !== "pods" || !begins || !shape.zones.includes(zone)) return;
      if (callers.getStore()?.actor.startsWith("reconciler")) done(zone);
    });
    const done = (zone?: string): void => {
      end();
      resolve(zone);
    };
    schedule.after(PATIENCE_MS, () => done());
  });
}

/** All zones get a new template, and something happens once the first pod of a zone has been taken. */
export async function amidBatch(people: People, act: (zone: string) => Promise<unknown>): Promise<void> {
  const { draw, shape } = people;
  const taken = nextTaken(people);
  const image = `app:${draw.between(100, 999)}`;
  for (const zone of shape.zones) await changeTemplate(people, zone, image, false);
  const zone = await taken;
  if (zone !== undefined) await act(zone);
}

export const AMID_BATCH = {
  pausedAmid: (people) =>
    amidBatch(people, async (zone) => {
      await annotateZone(people, zone, { [PAUSED]: "true" });
      await pause(people, people.draw.between(10_000, 40_000));
      await annotateZone(people, zone, { [PAUSED]: null });
    }),
  frozenAmid: (people) =>
    amidBatch(people, async (zone) => {
      const now = people.schedule.now();
      await annotateZone(people, zone, { [FREEZES]: `${timestamp(now - HOUR_MS)}/${timestamp(now + HOUR_MS)}` });
      await pause(people, 60_000);
      await annotateZone(people, zone, { [FREEZES]: null });
    }),
  /** Another zone shrinks, and a pod of it that stays falls ill. */
  shrunkAmid: (people) =>
    amidBatch(people, async (taken) => {
      const zone = people.draw.of(people.shape.zones.filter((other) => other !== taken));
      const replicas = replicasOf(people, zone);
      if (replicas < 2) return;
      await Promise.all([
        scale(people, zone, replicas - 1),
        annotatePod(people, `${zone}-0`, { "sim/ready": "false" }),
      ]);
      await pause(people, 20_000);
      await annotatePod(people, `${zone}-0`, { "sim/ready": null });
      await scale(people, zone, replicas);
    }),
} satisfies Readonly<Record<string, Action>>;
