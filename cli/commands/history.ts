/** `zonewise history`: the revisions that the zones of a group have run, the pods that run them, and their outcomes. */
import { events as eventResource, type Event } from "../../infra/kubernetes/resources.ts";
import { gatherGroup, readAll } from "../../reconciler/snapshot/gather.ts";
import { describeHistory, type ZoneHistoryRow } from "../decide/history.ts";
import { CliError, EXIT } from "../exit.ts";
import { findGroup, gatherZonesOf } from "../gather/groups.ts";
import { gatherHistories } from "../gather/revisions.ts";
import { formatAge } from "../output/age.ts";
import { print } from "../output/print.ts";
import { formatTable, wrapAfter, type Cell } from "../output/table.ts";
import type { Command, Session } from "../session.ts";
import { listSome } from "../../infra/cut.ts";

export const history: Command = {
  name: "history",
  arguments: "<group>",
  group: "Look",
  summary: "The revisions of each zone, the pods that run them, the outcomes",
  examples: [
    ["history GROUP", "the revisions that undo can go back to"],
    ["history GROUP -o json", "the same for a program"],
  ],
  flags: [],
  exits: { 0: "they were read" },
  completes: "groups",
  async run(session, { args: [group = ""] }) {
    const found = await gatherZonesOf(session, session.namespace, group);
    const [{ zones }, histories, events, status] = await Promise.all([
      gatherGroup(found, session),
      gatherHistories(session, found),
      gatherEvents(session, found[0]?.namespace ?? ""),
      gatherStatus(session, group),
    ]);
    const rows = describeHistory({ zones, histories, events });
    const now = session.clock.now();
    print(session, { group, rollout: status, zones: rows }, () => {
      const table = formatTable(
        ["ZONE", "REVISION", "IMAGES", { heading: "NAME", rank: 1 }, "AGE", { heading: "PODS", rank: 2 }, "OUTCOME"],
        rows.flatMap((row) => row.revisions.map((one, i) => renderRow(row, one, { isFirst: i === 0, now }))),
        session.io,
      );
      return `${table}${status === undefined ? "" : `\n${wrapAfter(describeRollout(status, now), 0, session.io)}\n`}`;
    });
    return EXIT.ok;
  },
};

type RevisionRow = ZoneHistoryRow["revisions"][number];

function renderRow(
  { zone }: ZoneHistoryRow,
  row: RevisionRow,
  { isFirst, now }: { isFirst: boolean; now: number },
): Cell[] {
  const at = row.at === undefined ? "" : ` ${formatAge(row.at, now)} ago`;
  return [
    isFirst ? zone : "",
    String(row.number),
    row.images.join(", "),
    row.name,
    formatAge(row.createdAt, now),
    listSome(row.pods, ", ", 3) || "-",
    `${row.outcome}${at}`,
  ];
}

async function gatherEvents(session: Session, namespace: string): Promise<readonly Event[]> {
  const query = { namespace, fieldSelector: "reportingComponent=zonewise" };
  const { items } = await readAll({ resource: eventResource, query, read: (event: Event) => event }, session);
  return items.filter(({ reportingComponent }) => reportingComponent === "zonewise");
}

interface Rollout {
  readonly phase: string | undefined;
  readonly message: string | undefined;
  readonly startTime: string | undefined;
  readonly completionTime: string | undefined;
}

/** Undefined if nothing is recorded of the group. */
async function gatherStatus(session: Session, group: string): Promise<Rollout | undefined> {
  try {
    const { status } = await findGroup(session, session.namespace, group);
    if (!status) return undefined;
    const { phase, message, progress } = status;
    return { phase, message, startTime: progress?.startTime, completionTime: progress?.completionTime };
  } catch (error) {
    // Without the definition, revisions and Events still show much.
    if (error instanceof CliError) return undefined;
    throw error;
  }
}

function describeRollout({ phase, message, startTime, completionTime }: Rollout, now: number): string {
  const began = startTime === undefined ? "" : `began ${formatAge(startTime, now)} ago, `;
  const end =
    completionTime === undefined ? `${phase}: ${message}` : `was completed ${formatAge(completionTime, now)} ago`;
  return startTime === undefined ? `no rollout is recorded; ${phase}: ${message}` : `the last rollout ${began}${end}`;
}
