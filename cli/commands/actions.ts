/**
 * `zonewise pause`, `resume`, `restart` and `bypass`, and the writes of `undo`, `retry` and `promote`: the changes of
 * users, each with the UID and version that were read as its preconditions (§18.7).
 */
import { RolloutError, wroteNothing } from "../../infra/errors.ts";
import { parseGoDuration, shortDuration } from "../../infra/duration.ts";
import { type Resource, statefulSets } from "../../infra/kubernetes/resources.ts";
import { MAX_BYPASS_MS } from "../../reconciler/gates/bypass.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { CliError, EXIT, type ExitCode, usageError } from "../exit.ts";
import { gatherZonesOf } from "../gather/groups.ts";
import { suggest } from "../gather/suggest.ts";
import { print } from "../output/print.ts";
import { wrapAfter } from "../output/table.ts";
import type { Command, Flag, Input, Session } from "../session.ts";

/** A change of one zone; undefined if there is nothing to change. */
export interface Change {
  readonly zone: Zone;
  readonly body: object | undefined;
  /** What happens to the zone: the sentence continues after its name. */
  readonly what: string;
  /** The whole sentence, where it does not begin with the name. */
  readonly sentence?: string;
  /** The message for a zone without a change; `was … already` by default. */
  readonly unchanged?: string;
}

type Decide = (zones: readonly Zone[], session: Session) => readonly Change[];

export const ZONE: Flag = { flag: "--zone <name>", summary: "only this zone" };
export const DRY_RUN: Flag = { flag: "--dry-run", summary: "check the changes, and store nothing" };

function defineAction(
  { name, summary, examples }: Pick<Command, "name" | "summary" | "examples">,
  decide: Decide,
): Command {
  return {
    name,
    arguments: "<group>",
    group: "Steer",
    summary,
    examples,
    flags: [ZONE, DRY_RUN],
    exits: { 0: "done, or it was so already" },
    run: (session, input) => act(session, input, decide),
  };
}

const annotate = (annotations: Readonly<Record<string, string | null>>): object => ({ metadata: { annotations } });

export const pause = defineAction(
  {
    name: "pause",
    summary: "Replace no pod of a group until it is resumed",
    examples: [
      ["pause GROUP", "replace none of its pods"],
      ["pause GROUP --zone ZONE", "replace none of one zone's"],
    ],
  },
  (zones) =>
    zones.map((zone) => ({
      zone,
      body: zone.paused ? undefined : annotate({ [ANNOTATIONS.paused]: "true" }),
      what: "paused",
    })),
);

export const resume = defineAction(
  {
    name: "resume",
    summary: "End the pause of a group",
    examples: [
      ["resume GROUP", "end the pause of all zones"],
      ["resume GROUP --zone ZONE", "end the pause of one zone"],
    ],
  },
  (zones) =>
    zones.map((zone) => ({
      zone,
      body: zone.paused ? annotate({ [ANNOTATIONS.paused]: null }) : undefined,
      what: "resumed",
    })),
);

/** kubectl rollout restart writes the same annotation. */
const RESTARTED_AT = "kubectl.kubernetes.io/restartedAt";

export const restart = defineAction(
  {
    name: "restart",
    summary: "Replace all pods of a group, zone by zone",
    examples: [
      ["restart GROUP", "replace all pods, zone by zone"],
      ["restart GROUP --zone ZONE", "replace the pods of one zone"],
    ],
  },
  (zones, { clock }) =>
    zones.map((zone) => ({
      zone,
      body: { spec: { template: annotate({ [RESTARTED_AT]: formatTimestamp(clock.now()) }) } },
      what: "is restarted",
      sentence: describeRestart(zone),
    })),
);

const describeRestart = ({ namespace, group, name, paused }: Zone): string =>
  `Restart of ${name} requested${paused ? `; it is paused: its pods stay until zonewise -n ${namespace} resume ${group}` : ""}`;

/** Lets zones begin without their gates, for a time that ends by itself (§14.8). */
export const bypass: Command = {
  name: "bypass",
  arguments: "<group>",
  group: "Steer",
  summary: "Begin zones without their gates, for a time",
  examples: [
    ["bypass GROUP --for 30m --reason incident-7", "let its zones begin without gates for half an hour"],
    ["bypass GROUP --end", "make them wait for their gates again"],
  ],
  flags: [
    { flag: "--for <duration>", summary: "how long, e.g. 30m; at most 24h" },
    { flag: "--reason <text>", summary: "why: Events and status show it" },
    { flag: "--end", summary: "end the bypass now" },
    ZONE,
    DRY_RUN,
  ],
  exits: { 0: "done, or it was so already" },
  async run(session, input) {
    const wanted = readWanted(input);
    return await act(session, input, (zones, { clock }) =>
      zones.map((zone) => (wanted ? begin(zone, { ...wanted, now: clock.now() }) : end(zone))),
    );
  },
};

interface Wanted {
  readonly forMs: number;
  readonly reason: string;
}

/** Undefined to end it. */
function readWanted({ flags: { for: text, reason, end: isEnd } }: Input): Wanted | undefined {
  if (isEnd === true) {
    if (text === undefined && reason === undefined) return undefined;
    throw usageError("--end takes no --for and no --reason; nothing was changed");
  }
  if (typeof text !== "string") throw usageError("bypass needs --for or --end; nothing was changed");
  const forMs = parseGoDuration(text);
  if (forMs === undefined || forMs < 1000 || forMs > MAX_BYPASS_MS)
    throw usageError(`invalid --for "${text}": use 1s to 24h, e.g. 30m; nothing was changed`);
  if (typeof reason !== "string" || reason.trim() === "")
    throw usageError("bypass needs --reason; nothing was changed", "give the reason: Events and status show it");
  return { forMs, reason: reason.trim() };
}

const writeBypass = (until: string | null, reason: string | null): object =>
  annotate({ [ANNOTATIONS.bypassGatesUntil]: until, [ANNOTATIONS.bypassGatesReason]: reason });

function begin(zone: Zone, { forMs, reason, now }: Wanted & { readonly now: number }): Change {
  const until = formatTimestamp(now + forMs);
  const what = `may begin without its gates until ${until}, for ${shortDuration(forMs)}`;
  return { zone, body: writeBypass(until, reason), what };
}

function end(zone: Zone): Change {
  return {
    zone,
    body: zone.bypass ? writeBypass(null, null) : undefined,
    what: "waits for its gates again",
    unchanged: "had no bypass",
  };
}

/** Changes the zones of a group, or the one that `--zone` names, as `decide` says. */
async function act(session: Session, { args: [group = ""], flags }: Input, decide: Decide): Promise<ExitCode> {
  const dryRun = flags["dryRun"] === true;
  const zones = chooseZones(await gatherZonesOf(session, group), flags["zone"]);
  const changes = decide(zones, session);
  const done = await applyChanges(session, changes, dryRun);
  reportChanges(session, { group, dryRun, done });
  return EXIT.ok;
}

/**
 * Writes one zone after the other; resolves with a sentence for each. Rejects at the first zone that cannot be written.
 */
export async function applyChanges(session: Session, changes: readonly Change[], dryRun: boolean): Promise<string[]> {
  const done: string[] = [];
  for (const one of changes) {
    const { zone, body, what, sentence = `${zone.name} ${what}`, unchanged = `was ${what} already` } = one;
    const type = "strategic";
    if (body)
      await change(session, { ...zone, resource: statefulSets }, { body, type, dryRun }).catch((error: unknown) =>
        stop(error, zone, done),
      );
    done.push(body ? sentence : `${zone.name} ${unchanged}`);
  }
  return done;
}

/** Prints the changes. Pass no `noTicks` if they have been printed before. */
export function reportChanges(
  session: Pick<Session, "output" | "io" | "noTicks">,
  { done, ...rest }: { group: string; dryRun: boolean; done: readonly string[]; zones?: readonly object[] },
): void {
  const suffix = rest.dryRun ? " (dry run)" : "";
  print(session, { ...rest, changes: done }, () =>
    done.map((line) => `${wrapAfter(line + suffix, 2, session.io)}\n`).join(""),
  );
}

export function chooseZones(zones: readonly Zone[], name: string | boolean | undefined): readonly Zone[] {
  if (typeof name !== "string") return zones;
  const chosen = zones.filter((zone) => zone.name === name);
  if (chosen.length > 0) return chosen;
  throw new CliError(`no zone ${JSON.stringify(name)} in the group`, {
    hint: suggest(
      name,
      zones.map((zone) => zone.name),
      "zones",
    ),
  });
}

export interface Written extends Pick<Zone, "namespace" | "name" | "uid" | "resourceVersion"> {
  readonly resource: Resource<object>;
}

/** Changes an object only as it was read: one that somebody else has changed meanwhile stays as it is. */
export async function change(
  { cluster }: Session,
  { resource, namespace, name, uid, resourceVersion }: Written,
  { body, type, dryRun }: { readonly body: object; readonly type: "strategic" | "merge"; readonly dryRun: boolean },
): Promise<void> {
  const { metadata, ...rest } = body as { readonly metadata?: object };
  const whole = { ...rest, metadata: { ...metadata, uid, resourceVersion } };
  await cluster.change(resource, { namespace, name, type, body: whole, fieldManager: "zonewise-cli", dryRun });
}

function stop(error: unknown, zone: Zone, done: readonly string[]): never {
  if (!(error instanceof RolloutError)) throw error;
  const isSure = wroteNothing(error);
  const rest =
    done.length > 0 ? `before it: ${done.join(", ")}` : isSure ? "nothing was changed" : "nothing else was changed";
  const message = `${zone.name} ${isSure ? "could not be" : "may have been"} changed: ${error.message}; ${rest}`;
  throw new RolloutError(error.code, message, {
    cause: error,
    ...(error.status !== undefined && { status: error.status }),
  });
}
