/** `zonewise bypass`: lets a group's zones begin without their gates, for a time that ends by itself (§14.8). */
import { parseGoDuration, shortDuration } from "../../infra/duration.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { MAX_BYPASS_MS } from "../../reconciler/gates/bypass.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import type { Zone } from "../../reconciler/model/zone.ts";
import { usageError } from "../exit.ts";
import type { Command, Input } from "../session.ts";
import { act, DRY_RUN, ZONE, type Change } from "./actions.ts";

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
  completes: "groups",
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

const annotate = (until: string | null, reason: string | null): object => ({
  metadata: {
    annotations: { [ANNOTATIONS.bypassGatesUntil]: until, [ANNOTATIONS.bypassGatesReason]: reason },
  },
});

function begin(zone: Zone, { forMs, reason, now }: Wanted & { readonly now: number }): Change {
  const until = formatTimestamp(now + forMs);
  const what = `may begin without its gates until ${until}, for ${shortDuration(forMs)}`;
  return { zone, body: annotate(until, reason), what };
}

function end(zone: Zone): Change {
  return {
    zone,
    body: zone.bypass ? annotate(null, null) : undefined,
    what: "waits for its gates again",
    unchanged: "had no bypass",
  };
}
