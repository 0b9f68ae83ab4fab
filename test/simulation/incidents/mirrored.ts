/** Zones that follow a template, whose number changes while their pods are told that they go. */
import type { Sent } from "../../emulator/in-process.ts";
import { GROUP } from "../names.ts";
import {
  annotatePod,
  type Action,
  pause,
  type People,
  podOf,
  replicasOf,
  scale,
  TEMPLATES_PATH,
  until,
} from "../person.ts";
import { CALM, DELAYED_PATH } from "../shape.ts";
import type { Area } from "./incident.ts";
import { settled } from "./other-pods.ts";
import { label, withOthers } from "./shrinking.ts";

const PREPARE = "grafana.com/prepare-downscale";
const TROUBLED_MS = 240_000;
/** A pod answers so late, and in time. */
const ANSWER_MS = 3000;
const [SLOW, QUICK] = [{ "sim/answer-after-ms": String(ANSWER_MS) }, { "sim/answer-after-ms": null }];

const ask = ({ world }: People, replicas: number): Promise<unknown> =>
  world.ask("autoscaler", "PATCH", `${TEMPLATES_PATH}/${GROUP}/scale`, { spec: { replicas } });

/** Resolves as the pod is asked so late that it answers after this time; or once `ms` are over. */
function askedLate({ world, schedule }: People, pod: string, { at, ms }: Record<"at" | "ms", number>): Promise<void> {
  return new Promise((resolve) => {
    const isLate = ({ method, host, path }: Sent): boolean =>
      method === "POST" &&
      host.startsWith(`${pod}.`) &&
      path.endsWith(`/${DELAYED_PATH}`) &&
      schedule.now() + ANSWER_MS > at;
    const end = world.disturb((_, sent) => {
      if (isLate(sent)) stop();
      return undefined;
    });
    const stop = (): void => {
      end();
      resolve();
    };
    schedule.after(ms, stop);
  });
}

const INCIDENTS: Readonly<Record<string, Action>> = {
  /** It grows again while a pod that goes answers that its time is over. */
  growsAgain: async (people) => {
    await settled(people);
    const { world, shape, schedule, draw } = people;
    const { zones, mirrored } = shape;
    const zone = draw.of(zones);
    const size = replicasOf(people, zone);
    if (size < 2 || !mirrored?.delayMs) return;
    const pod = `${zone}-${size - 1}`;
    await annotatePod(people, pod, SLOW);
    await ask(people, size - 1);
    const uid = podOf(people, pod)?.metadata.uid ?? "";
    if (await until(people, () => world.leaving.has(uid), { ms: 60_000 })) {
      const overAt = (world.leaving.get(uid) ?? 0) + mirrored.delayMs;
      await askedLate(people, pod, { at: overAt, ms: overAt - schedule.now() + 30_000 });
      await pause(people, draw.between(1, ANSWER_MS - 500));
    }
    await ask(people, size);
    await pause(people, 30_000);
    await annotatePod(people, pod, QUICK);
  },
  /** A person shrinks the last zone, which others take long to judge; the first one, of which no webhook is asked, is to follow. */
  admittedMeanwhile: async (people) => {
    await settled(people);
    const { shape, draw } = people;
    const [first = "", last = ""] = [shape.zones[0], shape.zones.at(-1)];
    const size = replicasOf(people, last);
    if (size < 2) return;
    await label(people, first, { [PREPARE]: null });
    await withOthers(people, { zone: last, ms: 9000 }, async () => {
      const tried = scale(people, last, size - 1);
      await pause(people, draw.between(500, 3000));
      await ask(people, size - 1);
      await tried;
      await pause(people, 10_000);
    });
    await ask(people, size);
    await label(people, first, { [PREPARE]: "true" });
  },
};

/** Most of its worlds have no fault of the network. */
export const MIRRORED_AREA: Area = {
  shape: ({ nodes, replicas, actions, troubledMs }, draw) =>
    nodes
      ? undefined
      : {
          mirrored: { delayMs: draw.of([0, 60_000]) },
          prepared: true,
          secondsBetween: 0,
          followers: false,
          replicas: Math.max(replicas, 3),
          skewMs: draw.of([0, 500]),
          actions: Math.min(actions, draw.of([0, 0, 4])),
          troubledMs: Math.max(troubledMs, TROUBLED_MS),
          ...(draw.chance(0.7) && CALM),
        },
  incidents: INCIDENTS,
};
