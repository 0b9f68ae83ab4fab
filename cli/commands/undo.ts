/** `zonewise undo`: the zones that are under way go back to what they ran before (§18.7). */
import { countOthers, describeRevision, planUndo, type ZoneHistory, type ZoneUndo } from "../decide/revisions.ts";
import { CliError, EXIT, usageError } from "../exit.ts";
import { gatherZonesOf } from "../gather/groups.ts";
import { gatherHistories } from "../gather/revisions.ts";
import { print } from "../output/print.ts";
import { formatRecords, wrapAfter, type Cell } from "../output/table.ts";
import type { Command, Input, Session } from "../session.ts";
import { applyChanges, chooseZones, DRY_RUN, reportChanges, ZONE, type Change } from "./actions.ts";

export const undo: Command = {
  name: "undo",
  arguments: "<group>",
  group: "Steer",
  summary: "Return zones under way to their previous template",
  examples: [
    ["undo GROUP", "take back the template of a rollout under way"],
    ["undo GROUP --zone ZONE --to-revision 3", "take one zone to a revision, also a finished zone"],
  ],
  flags: [
    ZONE,
    { flag: "--to-revision <revision>", summary: "with --zone: to this revision, also a finished zone" },
    { flag: "-y, --yes", summary: "do not ask; needed without a terminal" },
    DRY_RUN,
  ],
  exits: { 0: "done, or there was nothing to do", 1: "you did not answer yes" },
  async run(session, input) {
    const {
      args: [group = ""],
      flags,
    } = input;
    const to = readRevision(input);
    const dryRun = flags["dryRun"] === true;
    const zones = chooseZones(await gatherZonesOf(session, group), flags["zone"]);
    const histories = await gatherHistories(session, zones);
    const plan = planUndo(histories, to);
    if ("problem" in plan) throw new CliError(`${plan.problem}; nothing was changed`);
    const going = plan.zones.filter(({ becomes }) => becomes !== undefined);
    const described = describePlan(session, plan.zones, histories);
    const isShown = session.output === "table";
    if (isShown) print(session, undefined, () => described);
    if (going.length > 0 && !(await isConfirmed(session, input, described))) {
      session.io.warn("nothing was changed\n");
      return EXIT.no;
    }
    const changes = plan.zones.map(toChange(histories));
    const done = await applyChanges(session, changes, dryRun);
    const said = isShown ? { ...session, noTicks: [] } : session;
    reportChanges(said, { group, dryRun, done, zones: plan.zones.map(toDocument(histories)) });
    return EXIT.ok;
  },
};

/** Each StatefulSet numbers its own revisions: the same number is a different template in another zone. */
function readRevision({ args: [group], flags: { toRevision, zone } }: Input): string | undefined {
  if (toRevision === undefined) return undefined;
  if (zone !== undefined) return String(toRevision);
  throw usageError(
    "--to-revision needs --zone, as each zone numbers its own revisions; nothing was changed",
    `name one zone at a time; zonewise history ${group} shows the revisions`,
  );
}

/** Throws if nobody can be asked. */
async function isConfirmed({ io, output }: Session, { flags }: Input, described: string): Promise<boolean> {
  if (flags["yes"] === true || flags["dryRun"] === true) return true;
  if (!io.confirm) throw usageError("undo asks first, and there is no terminal; nothing was changed", "add --yes");
  return await io.confirm(`${output === "table" ? "" : described}Change these templates?`);
}

const revisionsOf = (zone: ZoneUndo["zone"], histories: readonly ZoneHistory[]) =>
  histories.find((one) => one.zone.uid === zone.uid)?.revisions ?? [];

const toChange =
  (histories: readonly ZoneHistory[]) =>
  ({ zone, was, becomes }: ZoneUndo): Change => {
    const name = describeRevision(becomes?.name ?? was, revisionsOf(zone, histories));
    return { zone, body: becomes?.patch, what: `goes back to ${name}`, unchanged: `stays at ${name}` };
  };

const toDocument =
  (histories: readonly ZoneHistory[]) =>
  ({ zone, stage, was, becomes }: ZoneUndo): object => {
    const show = (name: string): object => {
      const { number, images } = revisionsOf(zone, histories).find((one) => one.name === name) ?? {};
      return { revision: name, number, images };
    };
    return { zone: zone.name, stage, was: show(was), ...(becomes && { becomes: show(becomes.name) }) };
  };

const countLeft = ({ replicas, status }: ZoneUndo["zone"]): number => Math.max(0, replicas - status.updated);

/** The effect of the changed template on the pods of a zone. */
function describePods({ zone, stage, becomes }: ZoneUndo): string {
  if (stage === "going back" && !becomes) return `${countLeft(zone)} of ${zone.replicas} go back already`;
  if (!becomes) return "no pods replaced";
  if (stage === "finished") return "all are replaced, in turn";
  if (becomes.name !== zone.status.currentRevision) return "pods of other revisions are replaced, in turn";
  return stage === "under way"
    ? `${countOthers(zone)} of ${zone.replicas} go back`
    : "no pods replaced; the rollout had not started here";
}

function describePlan({ io }: Session, zones: readonly ZoneUndo[], histories: readonly ZoneHistory[]): string {
  const rows = zones.map((one): Cell[] => {
    const { zone, stage, was, becomes } = one;
    const revisions = revisionsOf(zone, histories);
    const next: Cell = becomes ? { text: describeRevision(becomes.name, revisions), tone: "moving" } : "-";
    return [zone.name, stage, describeRevision(was, revisions), next, describePods(one)];
  });
  return `${formatRecords(["ZONE", "STATE", "WAS", "BECOMES", "PODS"], rows, io)}${hintOf(zones, histories, io)}\n`;
}

/** The command that takes a finished zone back, in case the user wants that. */
function hintOf(zones: readonly ZoneUndo[], histories: readonly ZoneHistory[], io: Session["io"]): string {
  const left = zones.find(({ stage, becomes }) => stage === "finished" && !becomes);
  const before = left && revisionsOf(left.zone, histories).find(({ name }) => name !== left.was);
  if (!left || !before) return "";
  const { namespace, group, name } = left.zone;
  const command = `zonewise -n ${namespace} undo ${group} --zone ${name} --to-revision ${before.number}`;
  return `${wrapAfter("Finished zones stay as they are. To undo one as well:", 0, io)}\n  ${command}\n`;
}
