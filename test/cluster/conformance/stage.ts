/** Where a scenario plays: one namespace of one cluster, and the record of what was answered there. */
import { dig } from "../../emulator/objects.ts";
import type { Answer, Client, Request, WatchEvent } from "./client.ts";
import { createNormaliser } from "./normalise.ts";

/** One line of a record: what was done, and what came of it. */
export interface Entry {
  readonly step: string;
  readonly status?: number;
  readonly result?: unknown;
}

export interface Watching {
  /** All events so far. */
  readonly events: readonly WatchEvent[];
  /** Resolves with the events once `when` holds of them; rejects after 20 s. */
  until(when: (events: readonly WatchEvent[]) => boolean): Promise<readonly WatchEvent[]>;
  /** Forgets all that is still waited for. */
  giveUp(): void;
  stop(): void;
}

export interface Stage {
  readonly namespace: string;
  /** Sends and records the status code; of the body, what `pick` lists (dotted paths; "." for all), and always all of a refusal. */
  call(step: string, request: Request, ...pick: readonly string[]): Promise<Answer>;
  /** Sends and records the status code and reason alone, where the words are Go's own. */
  refused(step: string, request: Request): Promise<Answer>;
  /** Sends without a trace. */
  quietly(request: Request): Promise<Answer>;
  note(step: string, result: unknown): void;
  /** From now on, writes `role` for a name that the server made up. */
  nameOf(name: string, role: string): void;
  watch(path: string, accept?: string): Promise<Watching>;
}

export interface Scenario {
  readonly name: string;
  run(stage: Stage): Promise<void>;
}

const PATIENCE_MS = 20_000;

/** The step that ends the record of a scenario in which something never came. */
export const BROKE_OFF = "the scenario broke off";

/** Plays one scenario in `namespace`, which exists; answers what it recorded. */
export async function play(client: Client, scenario: Scenario, namespace: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  const names = new Map([[namespace, "<namespace>"]]);
  const normalise = createNormaliser(names);
  const watches = new Set<Watching>();
  const stage: Stage = {
    namespace,
    quietly: (request) => client.call(request),
    call: async (step, request, ...pick) => {
      const answer = await client.call(request);
      const parts = answer.status >= 400 ? ["."] : pick;
      const result = Object.fromEntries(parts.map((path) => [path, path === "." ? answer.body : dig(answer.body, ...split(path))]));
      entries.push({ step, status: answer.status, ...(parts.length > 0 && { result: normalise(result) }) });
      return answer;
    },
    refused: async (step, request) => {
      const answer = await client.call(request);
      entries.push({ step, status: answer.status, result: dig(answer.body, "reason") });
      return answer;
    },
    note: (step, result) => void entries.push({ step, result: normalise(result) }),
    nameOf: (name, role) => void names.set(name, role),
    watch: async (path, accept) => {
      const watching = await openWatch(client, path, accept);
      watches.add(watching);
      return watching;
    },
  };
  try {
    await scenario.run(stage);
  } catch (error) {
    entries.push({ step: BROKE_OFF, result: String(error) });
  }
  for (const watching of watches) watching.stop();
  return entries;
}

async function openWatch(client: Client, path: string, accept?: string): Promise<Watching> {
  const events: WatchEvent[] = [];
  const waiting = new Map<() => void, NodeJS.Timeout>();
  const giveUp = (): void => {
    for (const timer of waiting.values()) clearTimeout(timer);
    waiting.clear();
  };
  const stream = await client.watch({ path, ...(accept && { accept }) }, (event) => {
    events.push(event);
    for (const check of waiting.keys()) check();
  });
  return {
    events,
    until: (when) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(new Error(`not seen within ${PATIENCE_MS} ms on ${path}`));
        }, PATIENCE_MS);
        const check = (): void => {
          if (!when(events)) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve(events);
        };
        waiting.set(check, timer);
        void stream.ended.then(check);
        check();
      }),
    giveUp,
    stop: () => {
      giveUp();
      stream.stop();
    },
  };
}

/** Dots in a field's name are written as "\\.". */
function split(path: string): string[] {
  return path.split(/(?<!\\)\./).map((step) => step.replaceAll("\\.", "."));
}
