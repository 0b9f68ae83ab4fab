/**
 * `zonewise pause`, `resume` and `restart`, and the writes of `undo`: the changes of users to a group's StatefulSets,
 * each with the version that was read as its precondition (§18.7).
 */
import { RolloutError, wroteNothing } from "../../infra/errors.ts";
import { statefulSets } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { CliError, EXIT, type ExitCode } from "../exit.ts";
import { gatherZonesOf } from "../gather/groups.ts";
import { suggest } from "../gather/suggest.ts";
import { print } from "../output/print.ts";
import { wrapAfter } from "../output/table.ts";
import type { Command, Flag, Input, Session } from "../session.ts";

/** A change of one zone; undefined if there is nothing to change. */
export interface Change {
  readonly zone: Zone;
  readonly body: object | undefined;
  /** What becomes of the zone: the sentence goes on after its name. */
  readonly what: string;
  /** The whole sentence, where it does not begin with the name. */
  readonly sentence?: string;
  /** What is said of a zone without a change; `was … already` unless given. */
  readonly unchanged?: string;
}

type Decide = (zones: readonly Zone[], session: Session) => readonly Change[];

export const ZONE: Flag = { flag: "--zone <name>", summary: "only this zone", completes: "zones" };
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
    completes: "groups",
    run: (session, input) => act(session, input, decide),
  };
}

const annotate = (key: string, value: string | null): object => ({ metadata: { annotations: { [key]: value } } });

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
      body: zone.paused ? undefined : annotate(ANNOTATIONS.paused, "true"),
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
      body: zone.paused ? annotate(ANNOTATIONS.paused, null) : undefined,
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
      body: { spec: { template: annotate(RESTARTED_AT, formatTimestamp(clock.now())) } },
      what: "is restarted",
      sentence: describeRestart(zone),
    })),
);

const describeRestart = ({ namespace, group, name, paused }: Zone): string =>
  `Restart of ${name} requested${paused ? `; it is paused: its pods stay until zonewise -n ${namespace} resume ${group}` : ""}`;

/** Changes the zones of a group, or the one that `--zone` names, as `decide` says. */
export async function act(session: Session, { args: [group = ""], flags }: Input, decide: Decide): Promise<ExitCode> {
  const dryRun = flags["dryRun"] === true;
  const zones = chooseZones(await gatherZonesOf(session, session.namespace, group), flags["zone"]);
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
  for (const change of changes) {
    const { zone, body, what, sentence = `${zone.name} ${what}`, unchanged = `was ${what} already` } = change;
    if (body) await write(session, change, dryRun).catch((error: unknown) => stop(error, change, done));
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

/**
 * Writes with the version that was read as precondition: a zone that somebody else has changed meanwhile stays as it
 * is.
 */
async function write({ cluster }: Session, { zone, body }: Change, dryRun: boolean): Promise<void> {
  const { namespace, name, resourceVersion, uid } = zone;
  const { metadata, ...rest } = body as { readonly metadata?: object };
  const whole = { ...rest, metadata: { ...metadata, uid, resourceVersion } };
  await cluster.change(statefulSets, {
    namespace,
    name,
    type: "strategic",
    body: whole,
    fieldManager: "zonewise-cli",
    dryRun,
  });
}

function stop(error: unknown, { zone }: Change, done: readonly string[]): never {
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
