/** Writes that every rule allows, in loops of several kinds, and writes that some rule forbids at any time. */
import { setTimeout as sleep } from "node:timers/promises";
import { evict } from "../stage/evict.ts";
import { until } from "../stage/until.ts";
import type { Stage } from "../stage/stage.ts";
import { GUARDED, KEPT } from "./stand-in.ts";

type Place = Pick<Stage, "call" | "namespace" | "timeline" | "patchZone">;

/** One write; resolves with what went wrong, "" if nothing did. */
type Write = (turn: number) => Promise<string>;

interface Writes {
  /** Legal writes that were not taken, with the time. */
  readonly refused: readonly string[];
  /** Illegal writes that were taken. */
  readonly unjudged: readonly string[];
  readonly describe: () => string;
  /** Resolves after the last answer. */
  readonly stop: () => Promise<void>;
}

/** Milliseconds between two writes of a loop: what a migration leaves open lasts for seconds. */
const PAUSE_MS = 700;
const taken = (call: Promise<unknown>): Promise<string> => call.then(() => "", String);

const isRefusal = (trouble: string): boolean => /denied|refuses|not allowed/.test(trouble);

export function startWrites(place: Place): Writes {
  const counts = new Map<string, number>();
  const refused: string[] = [];
  const unjudged: string[] = [];
  const ended = new AbortController();
  const { signal } = ended;

  const repeat = async (name: string, write: Write, report: (trouble: string) => void): Promise<void> => {
    for (let turn = 0; !signal.aborted; turn++) {
      report(await write(turn).catch(String));
      counts.set(name, turn + 1);
      await sleep(PAUSE_MS);
    }
  };
  const legal = Object.entries(buildLegal(place, signal)).map(([name, write]) =>
    repeat(name, write, (trouble) => trouble !== "" && refused.push(`${new Date().toISOString()} ${name}: ${trouble}`)),
  );
  const illegal = Object.entries(buildIllegal(place)).map(([name, write]) =>
    repeat(
      name,
      write,
      (trouble) => !isRefusal(trouble) && unjudged.push(`${new Date().toISOString()} ${name}: ${trouble}`),
    ),
  );
  return {
    refused,
    unjudged,
    describe: () => [...counts].map(([name, count]) => `${count} × ${name}`).join(", "),
    async stop() {
      ended.abort();
      await Promise.all([...legal, ...illegal]);
    },
  };
}

function buildLegal(place: Place, signal: AbortSignal): Readonly<Record<string, Write>> {
  const { call, namespace, patchZone, timeline } = place;
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const budgets = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`;
  const podsOf = (group: string) => [...timeline.pods.values()].filter((pod) => pod.group === group);
  const whole = async (group: string, count: number): Promise<void> => {
    const isWhole = (): boolean =>
      signal.aborted || (podsOf(group).length === count && podsOf(group).every(({ state }) => state === "ready"));
    await timeline.until(`${count} pods of ${group} are ready`, isWhole);
  };
  return {
    "image change": (turn) => {
      const image = `app:${Math.floor(turn / 60) + 2}`;
      return taken(
        patchZone(["rolled-a", "rolled-b"][turn % 2] ?? "", {
          spec: { template: { spec: { containers: [{ name: "app", image }] } } },
        }),
      );
    },
    annotation: (turn) => taken(patchZone("evicted-a", { metadata: { annotations: { turn: String(turn) } } })),
    "scaling of an unlabelled StatefulSet": (turn) => {
      const body = { spec: { replicas: 1 + (turn % 2) } };
      return taken(turn % 4 < 2 ? patchZone("plain", body) : call("PATCH", `${sets}/plain/scale`, body));
    },
    "downscale with preparation, and back": async (turn) => {
      const body = { spec: { replicas: 2 - (turn % 2) } };
      if (turn % 2 === 1) await whole("prepared", 2);
      const trouble = signal.aborted
        ? ""
        : await taken(call("PATCH", turn % 4 < 2 ? `${sets}/prepared` : `${sets}/prepared/scale`, body));
      // The reconciler concludes the zone's previous downscale at that moment: the next one is not legal yet. The next
      // turns try again.
      return trouble.includes("is already in process of updating replicas") ? "" : trouble;
    },
    eviction: async (turn) => {
      const name = ["evicted-a-0", "evicted-b-1", "evicted-a-1", "evicted-b-0"][turn % 4] ?? "";
      await whole("evicted", 4);
      const uid = timeline.pods.get(name)?.uid;
      const { message } = signal.aborted ? { message: "" } : await evict(place, name);
      if (message === "")
        await timeline.until(`${name} is replaced`, () => signal.aborted || timeline.pods.get(name)?.uid !== uid);
      // On a machine that stood still. Drainers try again.
      return message.includes("no decision could be made in time") ? "" : message;
    },
    budget: (turn) => {
      const spec = { maxUnavailable: 1 + (turn % 3), selector: { matchLabels: { "rollout-group": "nobody" } } };
      const body = {
        apiVersion: "rollout-operator.grafana.com/v1",
        kind: "ZoneAwarePodDisruptionBudget",
        metadata: { name: "extra" },
        spec,
      };
      if (turn % 3 === 0) return taken(call("POST", budgets, body));
      return taken(turn % 3 === 1 ? call("PATCH", `${budgets}/extra`, { spec }) : call("DELETE", `${budgets}/extra`));
    },
  };
}

/** Dry runs, so that a write that is taken does no harm. */
function buildIllegal(place: Pick<Place, "call" | "namespace">): Readonly<Record<string, () => Promise<string>>> {
  const sets = `/apis/apps/v1/namespaces/${place.namespace}/statefulsets`;
  return {
    "downscale with no-downscale": () =>
      taken(place.call("PATCH", `${sets}/${GUARDED}?dryRun=All`, { spec: { replicas: 0 } })),
    "eviction under maxUnavailable 0": async () => (await evict(place, `${KEPT}a-0`, { query: "?dryRun=All" })).message,
  };
}

/** How the answers to such writes differ, as docs/migrate/rollout-operator.md has it. */
const CODES = {
  original: { StatefulSet: [400], Scale: [400], Eviction: [403] },
  // A policy that does not know the Scale's object leaves it to the webhook behind it.
  zonewise: { StatefulSet: [403], Scale: [403, 400], Eviction: [429] },
} as const;

/** Resolves once they are answered so. */
export async function untilAnswers(place: Pick<Place, "call" | "namespace">, who: keyof typeof CODES): Promise<void> {
  const guarded = `/apis/apps/v1/namespaces/${place.namespace}/statefulsets/${GUARDED}`;
  const downscale = (path: string): Promise<unknown> =>
    place.call("PATCH", `${path}?dryRun=All`, { spec: { replicas: 0 } }).catch((error: Error) => error.cause);
  const asked = {
    StatefulSet: () => downscale(guarded),
    Scale: () => downscale(`${guarded}/scale`),
    Eviction: () => evict(place, `${KEPT}a-0`, { query: "?dryRun=All" }).then(({ code }) => code),
  };
  for (const [what, ask] of Object.entries(asked)) {
    const expected: readonly unknown[] = CODES[who][what as keyof typeof asked];
    let code: unknown;
    await until(
      () => `the code of ${who} for a ${what} is ${expected.join(" or ")}, not ${String(code)}`,
      async () => expected.includes((code = await ask())),
    );
  }
}
