/** `zonewise events`: what Zonewise has said of the objects of a namespace, or of one group. */
import { events as eventResource, type Event } from "../../infra/kubernetes/resources.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { EXIT } from "../exit.ts";
import { gatherZonesOf } from "../gather/groups.ts";
import { formatAge } from "../output/age.ts";
import { print } from "../output/print.ts";
import { formatTable, type Cell } from "../output/table.ts";
import type { Command } from "../session.ts";

const COMPONENT = "zonewise";

export const events: Command = {
  name: "events",
  arguments: "[group]",
  summary: "The Events that Zonewise has recorded, the newest last",
  flags: [],
  exits: { 0: "they were read" },
  completes: "groups",
  async run(session, { args: [group] }) {
    const { namespace, io, clock } = session;
    const zones = group === undefined ? undefined : await gatherZonesOf(session, namespace, group);
    const query = { ...(namespace !== "" && { namespace }), fieldSelector: `reportingComponent=${COMPONENT}` };
    const { items } = await readAll({ resource: eventResource, query, read: (event: Event) => event }, session);
    const own = items.filter((event) => event.reportingComponent === COMPONENT && (!zones || isOf(event, zones)));
    const sorted = own.toSorted((a, b) => (timeOf(a) < timeOf(b) ? -1 : 1));
    print(session, sorted, () => {
      const rows = sorted.map((event): Cell[] => [
        formatAge(timeOf(event), clock.now()),
        { text: event.type ?? "", tone: event.type === "Warning" ? "bad" : "plain" },
        event.reason ?? "",
        `${event.involvedObject.kind?.toLowerCase()}/${event.involvedObject.name}`,
        event.message ?? "",
      ]);
      return formatTable(["LAST-SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], rows, io.style) || "no Events\n";
    });
    return EXIT.ok;
  },
};

const timeOf = ({ lastTimestamp, firstTimestamp }: Event): string => lastTimestamp ?? firstTimestamp ?? "";

/** Whether the Event is about a zone or one of its pods, or names a zone in its message. */
function isOf({ involvedObject: { name = "" }, message = "" }: Event, zones: readonly Zone[]): boolean {
  return zones.some((zone) => name === zone.name || name.startsWith(`${zone.name}-`) || message.includes(zone.name));
}
