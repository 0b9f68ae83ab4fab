/** `zonewise history`: the revisions that the zones of a group have run, the pods that run them, and their outcomes. */
import { events as eventResource, type Event } from "../../infra/kubernetes/resources.ts";
import { gatherGroup, readAll } from "../../reconciler/snapshot/gather.ts";
import { describeHistory, type ZoneHistoryRow } from "../decide/revisions.ts";
import { EXIT } from "../exit.ts";
import { gatherZonesOf } from "../gather/groups.ts";
import { gatherHistories } from "../gather/revisions.ts";
import { formatAge } from "../output/text.ts";
import { print } from "../output/print.ts";
import { formatTable, type Cell } from "../output/table.ts";
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
  async run(session, { args: [group = ""] }) {
    const found = await gatherZonesOf(session, group);
    const [{ zones }, histories, events] = await Promise.all([
      gatherGroup(found, session),
      gatherHistories(session, found),
      gatherEvents(session, found[0]?.namespace ?? ""),
    ]);
    const rows = describeHistory({ zones, histories, events });
    const now = session.clock.now();
    print(session, { group, zones: rows }, () =>
      formatTable(
        ["ZONE", "REVISION", "IMAGES", { heading: "NAME", rank: 1 }, "AGE", { heading: "PODS", rank: 2 }, "OUTCOME"],
        rows.flatMap((row) => row.revisions.map((one, i) => renderRow(row, one, { isFirst: i === 0, now }))),
        session.io,
      ),
    );
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
