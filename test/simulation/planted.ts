/** The table of planted bugs: what became of each. */
import type { Mutation } from "../mutation/mutation.ts";

export interface Planted {
  readonly result: "found" | "not found" | "out of reach";
  /** Of `found` the median number of seeds until it was found again, otherwise the number that was played. */
  readonly seeds: number;
  /** The first violation, in words; of others what one must know of them. */
  readonly what?: string | undefined;
}

interface Played {
  readonly output: string;
  readonly errors: string;
  /** False if it was ended because it took too long. */
  readonly ended: boolean;
  /** All that this stands for: those in which the bug would not differ go as they go without it. */
  readonly seeds: number;
  /** In how many of all seeds the line ran, and in how many the bug would differ. */
  readonly ran: number;
  readonly differed: number;
  /** The seeds that were to be played, with the digests of their histories without the bug. */
  readonly digests: ReadonlyMap<number, string>;
}

/** By file, and the sentence behind it: what no history of this world can show. */
const OUT_OF_REACH: readonly (readonly [RegExp, string])[] = [
  [/^cli\/|protection\.ts|a probe evicts/, "the command line is not played"],
  [
    /^reconciler\/(?:plan|remedies)\/|budget is deleted only if|judge-ticking\.ts/,
    "only the command line and the status page ask for this",
  ],
  [/^infra\/helm\//, "no chart is rendered"],
  [/pod-deletion-policy\//, "no world has this policy: the webhook judges deletions of pods"],
  [/^infra\/metrics\/|^functions\/(?:totals|status)\//, "nobody asks for metrics or for the status page"],
  [/^functions\/http\/(?:drain|body|certificate)\.ts/, "there are no sockets and no TLS servers"],
  [/tokens\.ts|callers that cannot be checked/, "the API server in memory presents no token"],
  [/exceed their message|answer without its list/, "the API server in memory sends no broken protobuf"],
  [/too-many-zones\.ts/, "no world has a thousand zones"],
  [/any number of replicas leaves room/, "no world has ten thousand pods"],
  [/ready only after the delay between zones/, "it differs for one millisecond, of times that have whole seconds"],
  [/prometheus\/act\/client\.ts/, "every host is allowed, and Prometheus needs no credentials"],
  [
    /limit-lists\.ts|lists of pods in flight|compiles? no pattern|compiled again|lets? others have|without a search/,
    "a bound of cost: nothing else happens without it",
  ],
  [/steps\.ts a namespace|slow steps of all|group-turns\.ts|resync\.ts/, "the world has one group"],
  [/checks\/act\/turns\.ts/, "two checks are asked at most"],
  [/keeps no other from its visit/, "64 PhasedRollouts are visited at a time, and no world has three"],
];

/** Undefined for a bug that histories may show. */
export const whyOutOfReach = ({ file, breaks }: Pick<Mutation, "file" | "breaks">): string | undefined =>
  OUT_OF_REACH.find(([pattern]) => pattern.test(`${file} ${breaks}`))?.[1];

const NOT_MET = "none of these histories meets what it guards against";
const NOTHING_FOLLOWS = "what it changes has no consequence in these histories";
/** Shorter than what the oracles allow a process that stands still, and a call on its way. */
const MOMENTS = "what it prevents can be seen for milliseconds, which the oracles allow every process";
const UNREADY = "it takes pods that are not ready, and the oracles judge those that are";
/** By the sentence: why an oracle does not find a bug that changes histories. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/handed its Lease over/, "the next run takes the Lease a little later: only time is lost"],
  [
    /batch ends once the process is stopped/,
    "the run ends or hands over a little later: each deletion is still confirmed, fenced and granted",
  ],
  [
    /no zone waits, for what a webhook refuses/,
    "the webhook refuses the same: the zone waits either way, and only what is told of it differs",
  ],
  [/^the zone is confirmed|^the group is read again|older than the spec|own deletion counts as seen/, MOMENTS],
  [/reads the budgets before the pods/, MOMENTS],
  [/while two zones are unhealthy/, "each zone is held by the other one all the same"],
  [/half-working|may come back|surplus pod that has served/, UNREADY],
  [/ready pods go only once/, "the order of a zone's pods: its limit holds all the same"],
  [/deletion of a pod that has gone/, "it fails in another way: nothing is taken"],
  [/denial is not repeated/, "an eviction is denied for longer: nothing is taken"],
  [/denial is cached for one minute/, "what is repeated is proved by the pods as they are: it is denied all the same"],
  [
    /zone under an invalid budget does not/,
    "no batch decides by an invalid budget: the zone waits, and another reason is told",
  ],
  [
    /^field: the controller that counts/,
    "the API server refuses a status without its version: none is written, and no oracle misses the groups' statuses",
  ],
  [/as many places as there are pods, downwards/, "an Event names another index: what is written is the same"],
  [
    /another policy drives is left alone/,
    "the second write of the shadow has the version before the first, and is refused",
  ],
  [
    /^after the first pod that refuses/,
    "all pods of a zone are called at once here: none is left that would not be called",
  ],
  [
    /no pod is called once/,
    "only a clock that is set ahead makes its time seem over here: the Lease is held all the same",
  ],
  [/whose pods cannot be read/, "lists of pods fail for a moment here: the next status, 30 s later, is written"],
  [/wait for its slowest group/, "the world has one group: what else a tick does comes later, and only time is lost"],
  [/changes during its slow step/, "the next tick comes within 5 s: only time is lost"],
  [/PhasedRollout (?:manages )?wakes no tick/, "a bound of cost: there is a tick more"],
  [/while the lists are read/, "what is written by an older list carries its version, and is refused"],
  [/given up only once/, "the pods that it does not wait for are not ready, and are to go"],
  [/whose answer could not be written/, "the answer is written with the next visit: only time is lost"],
  [/finds another name/, "nobody takes a Lease here while its holder may still write, which is judged"],
  [/waits for its slow steps/, "a slow step writes nothing afterwards, which is judged: it only reads"],
  [/answer is given before the deadline/, "what a webhook waits for ends by the same deadline"],
  [
    /sent over TLS alone/,
    "the agent's entry writes https into the URL itself, and no setting changes that: no agent has another one",
  ],
  [/pods of one budget are read at a time/, "a bound of memory: the same statuses are written"],
  [
    /each budget has its turn/,
    "there are two budgets at most, and lists of pods are slow by chance: the status of each is written a little later",
  ],
  [
    /reserved with too little time left/,
    "what is reserved for a request that is refused then ends by itself: others are denied for longer, and nothing is taken",
  ],
  [
    /downscale is of one StatefulSet/,
    "who counts the pods of a reserved downscale compares the UID as well: the old entry only stays until its time is over",
  ],
  [/must be over, not just reached/, "it differs in one millisecond, and the write that follows takes longer"],
  [
    /nothing is written once the downscale Lease/,
    "the calls that follow have no time left, so that the client sends none of them (Timeout)",
  ],
  [
    /not stepped twice at once/,
    "a tick leaves out what was under way before it listed the groups, begins each of the others once, and no other tick runs meanwhile",
  ],
  [
    /spread over ticks$|take no resync of others/,
    "no world has two thousand pods: one list, and one tick, has all that are due",
  ],
  [
    /no pods but those of a list of its own/,
    "a shared list is made as the first of two groups at most asks for it, at once: it is as young as one of its own",
  ],
  [/share one read of their group/, "a bound of cost: the group is read once more, and the zone waits all the same"],
  [
    /number of replicas that they were called for/,
    "a step reads a zone's reference once before its pods are called, so that the number is the same",
  ],
  [/serve nothing/, "what goes serves nothing, and the oracles judge pods that are ready"],
  [
    /^a window of which nobody knows/,
    "whatever a tick decides has its time: snapshots without one are those of tests alone",
  ],
  [/^a window is closed in a freeze/, "it is open for the first millisecond of the freeze alone"],
  [
    /^no data is no comparison/,
    "an answer without a series has no number: it is an error all the same, in other words",
  ],
  [
    /^an answer without its comparison/,
    "a spec that compares without a baseline cannot be read, and with one each answer is a comparison or an error",
  ],
  [/^a namespace (?:that forbids|whose)/, "the world has one namespace"],
  [
    /watched once, however often/,
    "the world has two RolloutGroups at most: they are read one by one, not listed again",
  ],
  [/learn first that they stay/, "zones have few pods here: all are called in one round"],
  [
    /^pods are prepared only after an earlier/,
    "the calls of the round before are cut off first: none begins any more, and waiting recalls none that is on its way",
  ],
  [/^gates judge the zones that are asked/, "a bound of cost: the verdicts are the same"],
  [/has 4\.5 s at least/, "two checks are asked at most: each has its turn at once"],
  [
    /^a tick waits 10 s|end of the round cuts off/,
    "each query begins at once here, no Secret is read for it, and it ends by itself after 5 s",
  ],
];

/** Why a planted bug was not found, in words; "" for one that was. */
export function reasonOf({ result, what = "" }: Planted, breaks: string): string {
  if (result !== "not found") return "";
  const known = REASONS.find(([pattern]) => pattern.test(breaks))?.[1];
  if (known !== undefined) return known;
  if (what.endsWith("would differ in none")) return NOT_MET;
  return what.endsWith("changes 0") ? NOTHING_FOLLOWS : "a hole: no oracle judges what it does";
}

const MAX_CHARS = 160;

/** Reads what `simulate.ts` printed. */
export function plantedOf({ output, errors, ended, seeds, ran, differed, digests }: Played): Planted {
  if (differed === 0) return { result: "not found", seeds, what: `${ran} seeds run it, and it would differ in none` };
  const finds = [...output.matchAll(/^seed (\d+): .*\n {2}(.*)$/gm)].map(([, seed, what = ""]) => ({
    seed: Number(seed),
    what,
  }));
  const [first] = finds;
  if (!first) {
    const trouble = ended ? errors.split("\n").find((line) => /error/i.test(line)) : "a history does not end";
    if (trouble !== undefined)
      return { result: "found", seeds: (digests.keys().next().value ?? 0) + 1, what: trouble.trim() };
    const without = [...digests.values()];
    const others = [...output.matchAll(/^digest (.*)$/gm)].filter(([, digest], i) => digest !== without[i]);
    const what = `${ran} seeds run it, it would differ in ${differed}, and of ${without.length} it changes ${others.length}`;
    return { result: "not found", seeds, what };
  }
  const gaps = finds.map(({ seed }, i) => seed - (finds[i - 1]?.seed ?? -1)).toSorted((a, b) => a - b);
  const median = gaps[Math.floor((gaps.length - 1) / 2)] ?? 0;
  return { result: "found", seeds: median, what: first.what.replaceAll("\t", " ").slice(0, MAX_CHARS) };
}

export function describePlanted({ result, seeds, what = "" }: Planted): string {
  switch (result) {
    case "found":
      return `found\t${seeds}\t${what}`;
    case "not found":
      return `not found\t${seeds}\t${what}`;
    case "out of reach":
      return `out of reach\t${seeds}\t${what || "no seed runs this line"}`;
    default:
      return result satisfies never;
  }
}

/** In the order of the mutations; bugs that are no longer among them are left out. */
export function formatPlanted(table: ReadonlyMap<string, Planted>, mutations: readonly Mutation[]): string {
  const lines = mutations.flatMap(({ breaks, file }) => {
    const planted = table.get(breaks);
    if (!planted) return [];
    const reason = reasonOf(planted, breaks);
    return [`${breaks}\t${describePlanted(planted)}\t${file}${reason === "" ? "" : `\t${reason}`}`];
  });
  return [
    "# Which planted bugs an oracle finds: the rule that each breaks, the result, the median number of seeds until then",
    "# (or how many were played), what was seen, the file, and why a bug was not found. Written by",
    "# `npm run simulate:planted -- --write`.",
    ...lines,
    "",
  ].join("\n");
}

export function parsePlanted(text: string): Map<string, Planted> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const [breaks = "", result, seeds, what = ""] = line.split("\t");
      return [breaks, { result: result as Planted["result"], seeds: Number(seeds), what }];
    }),
  );
}
