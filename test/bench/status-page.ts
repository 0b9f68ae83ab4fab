/** Milliseconds until the status page of many groups is rendered. */
import { renderPage } from "../../functions/status/view/page.ts";
import { sortGroups } from "../../functions/status/view/records.ts";
import { group, records, stored, zone } from "../functions/status/samples.ts";
import { atMost, type Bench, median } from "./row.ts";

const GROUPS = 500;
const AIM_MS = 1000;
const RUNS = 10;

export const benchStatusPage: Bench = async () => {
  const zones = ["a", "b", "c"].map((name) => zone(`zone-${name}`));
  const plan = zones.flatMap(({ name }) => [
    {
      action: "ReplacePods" as const,
      zone: name,
      count: 100,
      atOnce: 1,
      pods: Array.from({ length: 10 }, (_, pod) => `${name}-${pod}`),
    },
    { action: "FinishZone" as const, zone: name },
  ]);
  const status = { phase: "Waiting" as const, message: "zone-b waits for zone-a", holds: [stored()], zones, plan };
  const groups = sortGroups(Array.from({ length: GROUPS }, (_, index) => group(`group-${index}`, status)));
  const times: number[] = [];
  let bytes = 0;
  for (let run = 0; run < RUNS; run++) {
    const startedAt = performance.now();
    bytes = renderPage({ records: records({ groups }), focus: undefined }).length;
    times.push(performance.now() - startedAt);
  }
  const ms = median(times);
  const figure = `${ms.toFixed(0)} ms (first ${(times[0] ?? Number.NaN).toFixed(0)} ms), ${(bytes / 1000).toFixed(0)} kB`;
  return [
    { what: `status page, ${GROUPS} blocked groups of three zones: rendered`, figure, aim: atMost(AIM_MS, " ms", ms) },
  ];
};
