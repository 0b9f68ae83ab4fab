/** `zonewise events`: the Events of Zonewise about the objects of a namespace, or of one group. */
import { events as eventResource, type Event } from "../../infra/kubernetes/resources.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { byTime, lastSeen } from "../../reconciler/report/event-times.ts";
import { EXIT } from "../exit.ts";
import { gatherZonesOf } from "../gather/groups.ts";
import { formatAge } from "../output/age.ts";
import { formatNames, print } from "../output/print.ts";
import { formatTable, type Cell, type Column } from "../output/table.ts";
import type { Command } from "../session.ts";

const COMPONENT = "zonewise";
const COLUMNS: readonly Column[] = [
  { heading: "LAST-SEEN" },
  { heading: "TYPE", rank: 4 },
  { heading: "REASON", rank: 2 },
  { heading: "OBJECT", rank: 3 },
  { heading: "MESSAGE", rank: 1 },
];

export const events: Command = {
  name: "events",
  arguments: "[group]",
  summary: "The Events that Zonewise has recorded, the newest last",
  flags: [],
  exits: { 0: "they were read" },
  completes: "groups",
  hasNames: true,
  async run(session, { args: [group] }) {
    const { namespace, io, clock, output } = session;
    const zones = group === undefined ? undefined : await gatherZonesOf(session, namespace, group);
    const query = { ...(namespace !== "" && { namespace }), fieldSelector: `reportingComponent=${COMPONENT}` };
    const { items } = await readAll({ resource: eventResource, query, read: (event: Event) => event }, session);
    const own = items.filter((event) => event.reportingComponent === COMPONENT && (!zones || isOf(event, zones)));
    const sorted = own.toSorted(byTime);
    if (output === "name")
      io.write(formatNames(sorted.map(({ metadata }) => ({ kind: "event", name: metadata.name ?? "" }))));
    else
      print(session, sorted, () => {
        const rows = sorted.map((event): Cell[] => [
          formatAge(lastSeen(event), clock.now()),
          { text: event.type ?? "", tone: event.type === "Warning" ? "bad" : "plain" },
          event.reason ?? "",
          `${event.involvedObject.kind?.toLowerCase()}/${event.involvedObject.name}`,
          event.message ?? "",
        ]);
        const nothing = `no Events in ${namespace === "" ? "any namespace" : `namespace ${namespace}`}\n`;
        return formatTable(COLUMNS, rows, io) || nothing;
      });
    return EXIT.ok;
  },
};

/** True if the Event is about a zone or one of its pods, or names a zone in its message. */
function isOf({ involvedObject: { name = "" }, message = "" }: Event, zones: readonly Zone[]): boolean {
  return zones.some((zone) => name === zone.name || name.startsWith(`${zone.name}-`) || message.includes(zone.name));
}
