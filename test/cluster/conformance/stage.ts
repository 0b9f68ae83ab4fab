/** The environment of a scenario: a namespace, and the record of its responses. */
import { isDeepStrictEqual } from "node:util";
import { dig } from "../../emulator/objects.ts";
import { changesOf, type Fields, fieldsOf } from "../stage/fields.ts";
import { until } from "../stage/until.ts";
import type { Answer, Client, Request, WatchEvent } from "./client.ts";
import { createNormaliser } from "./normalise.ts";
import { at, get } from "./requests.ts";

/** One entry of a record: the step and its result. */
export interface Entry {
  readonly step: string;
  readonly status?: number;
  readonly result?: unknown;
}

export interface RecordedWatch {
  /** All events so far. */
  readonly events: readonly WatchEvent[];
  /** Resolves with the events once `condition` is true of them; rejects after two minutes. */
  until(condition: (events: readonly WatchEvent[]) => boolean): Promise<readonly WatchEvent[]>;
  /** Cancels all pending `until` calls. */
  cancelWaits(): void;
  stop(): void;
}

export interface Stage {
  readonly namespace: string;
  /**
   * Sends the request and records the status code and the fields of the body in `pick` (dotted paths; "." for
   * all), of an error what it says besides that it is one.
   */
  call(step: string, request: Request, ...pick: readonly string[]): Promise<Answer>;
  /** Sends the request and records only status code and reason: the message is Go's own. */
  refused(step: string, request: Request): Promise<Answer>;
  /** Sends the request without recording it. */
  send(request: Request): Promise<Answer>;
  record(step: string, result: unknown): void;
  /** Records the fields that are other than in the value that was recorded under this name before; null if gone. */
  recordChanges(step: string, name: string, value: unknown): void;
  /** From now on, records `placeholder` in place of a generated name. */
  replaceName(name: string, placeholder: string): void;
  watch(path: string, accept?: string): Promise<RecordedWatch>;
}

export interface Scenario {
  readonly name: string;
  run(stage: Stage): Promise<void>;
}

const TIMEOUT_MS = 120_000;

/** The last step in the record of a failed scenario. */
export const FAILED_STEP = "the scenario failed";

/** Runs one scenario in an existing namespace; returns its record. */
export async function runScenario(client: Client, scenario: Scenario, namespace: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  const names = new Map([[namespace, "<namespace>"]]);
  const normalise = createNormaliser(names);
  const watches = new Set<RecordedWatch>();
  const recorded = new Map<string, Fields>();
  const stage: Stage = {
    namespace,
    send: (request) => client.call(request),
    call: async (step, request, ...pick) => {
      const answer = await client.call(request);
      const result = Object.fromEntries(
        pick.map((path) => [path, path === "." ? answer.body : dig(answer.body, ...split(path))]),
      );
      if (answer.status >= 400) entries.push({ step, status: answer.status, result: normalise(refusalOf(answer)) });
      else entries.push({ step, status: answer.status, ...(pick.length > 0 && { result: normalise(result) }) });
      return answer;
    },
    refused: async (step, request) => {
      const answer = await client.call(request);
      entries.push({ step, status: answer.status, result: dig(answer.body, "reason") });
      return answer;
    },
    record: (step, result) => void entries.push({ step, result: normalise(result) }),
    recordChanges: (step, name, value) => {
      const fields = fieldsOf(normalise(value));
      entries.push({ step, result: changesOf(recorded.get(name) ?? {}, fields) });
      recorded.set(name, fields);
    },
    replaceName: (name, placeholder) => void names.set(name, placeholder),
    watch: async (path, accept) => {
      const watching = await openWatch(client, path, accept);
      watches.add(watching);
      return watching;
    },
  };
  try {
    await scenario.run(stage);
  } catch (error) {
    entries.push({ step: FAILED_STEP, result: String(error) });
  }
  for (const watching of watches) watching.stop();
  return entries;
}

export const hasRootCertificate = async (client: Client, namespace: string): Promise<boolean> =>
  (await client.call(get(at(namespace, "configmaps", "kube-root-ca.crt")))).status === 200;

/** Waits for the ConfigMap that a real cluster makes in every namespace: later it would disturb what is played there. */
export const untilPublished = (client: Client, namespace: string): Promise<void> =>
  until(`the cluster publishes its CA in ${namespace}`, () => hasRootCertificate(client, namespace));

/** A Status without what it has in every refusal; anything else in whole. */
function refusalOf({ status: code, body }: Answer): unknown {
  const common = { apiVersion: "v1", code, kind: "Status", metadata: {}, status: "Failure" };
  if (typeof body !== "object" || body === null) return { ".": body };
  const own = Object.entries(body).filter(([key]) => !(key in common));
  return isDeepStrictEqual({ ...Object.fromEntries(own), ...common }, body)
    ? { refused: Object.fromEntries(own) }
    : { ".": body };
}

async function openWatch(client: Client, path: string, accept?: string): Promise<RecordedWatch> {
  const events: WatchEvent[] = [];
  const waiting = new Map<() => void, NodeJS.Timeout>();
  const cancelWaits = (): void => {
    for (const timer of waiting.values()) clearTimeout(timer);
    waiting.clear();
  };
  const stream = await client.watch({ path, ...(accept && { accept }) }, (event) => {
    events.push(event);
    for (const check of waiting.keys()) check();
  });
  return {
    events,
    until: (condition) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(new Error(`condition not met within ${TIMEOUT_MS} ms on ${path}`));
        }, TIMEOUT_MS);
        const check = (): void => {
          if (!condition(events)) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve(events);
        };
        waiting.set(check, timer);
        void stream.ended.then(check);
        check();
      }),
    cancelWaits,
    stop: () => {
      cancelWaits();
      stream.stop();
    },
  };
}

/** Dots in a field's name are written as "\\.". */
function split(path: string): string[] {
  return path.split(/(?<!\\)\./).map((step) => step.replaceAll("\\.", "."));
}
