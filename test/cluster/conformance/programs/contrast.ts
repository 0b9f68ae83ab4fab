/** Plays a program on both clusters and tells what differs; shrinks one that differs. */
import { randomBytes } from "node:crypto";
import { thin } from "../../../simulation/shrink.ts";
import type { Client } from "../client.ts";
import { type Difference, compare } from "../compare.ts";
import type { Entry } from "../stage.ts";
import type { Drawn } from "./generate.ts";
import { embeddedGround, realGround } from "./grounds.ts";
import { type Played, clear, play } from "./play.ts";

interface Explanation {
  /** The kinds of steps: a part of "POST pods {...}". Any, if there is none. */
  readonly step?: RegExp;
  /** The field's path in what is recorded of a step. */
  readonly field: RegExp;
  readonly expected?: RegExp;
  readonly actual?: RegExp;
  readonly reason: string;
}

/** Of our own definitions the faults are known in full. */
const BUILT_IN = /^\d+: (?!\w+ (?:zoneaware|phased|replicat|rolloutg))/;

const EXPLAINED: readonly Explanation[] = [
  {
    step: BUILT_IN,
    field: /answer\.invalid\.(?:text|details\.causes)/,
    reason:
      "what is invalid in an object of a built-in kind is refused, in words of the embedded cluster's own and not in full",
  },
  {
    field: /data\.ca\.crt$|annotations\.kubernetes\.io\/description$/,
    reason: "the certificate that a cluster publishes in each namespace is its own",
  },
  {
    step: /\/status[ ?]/,
    field: /answer\.invalid\.details\.causes\.status\./,
    reason: "what is invalid in the status of a custom resource is named from the status on in the message",
  },
  {
    field: /conditions\.\d+\.message$|causes\.\d+\.message$/,
    actual: /found no controllers for pod/,
    reason: "which of several pods without a controller is named is chance",
  },
  {
    field: /answer\.invalid\.details\.causes\./,
    actual: /accessor error|non-negative integer/,
    reason: "what is wrong with the replicas or the selector of a custom resource is found a second time by its scale",
  },
  {
    step: /DELETE pods/,
    field: /answer\.body\.metadata\.resourceVersion$/,
    reason: "a pod that goes at once is answered with the version of its last state, or with none",
  },
  {
    field: /answer\.changed$/,
    expected: /^false$/,
    reason: "a write that changes nothing may still change who manages a field: there are no managed fields",
  },
  {
    step: / pods/,
    field: /answer\.body\..*status\.(?:conditions\.\d+\.status|containerStatuses\.\d+\.(?:ready|started))$/,
    reason: "how ready a pod was when it began to go depends on the speed of controllers",
  },
  {
    step: / pods|the end/,
    field:
      /(?:objects\.pods\/[^.]+|answer\.body)\.(?:metadata\.labels|spec\.nodeName|status\.(?:conditions|containerStatuses|hostIP|phase|podIPs?|startTime))$/,
    actual: /^(?:undefined|"Pending")$/,
    reason: "a pod whose owner never was may be deleted before it is bound to a node, or after that",
  },
  {
    field: /answer\.warnings$/,
    actual: /unknown field|prefer a domain-qualified/,
    reason: "warnings are not given: of unknown fields, which are left out, and of finalizers without a domain",
  },
  {
    field: /answer\.body\.message$/,
    actual: /StorageError: invalid object, Code: 4, Key: /,
    reason: "the key in etcd, which a conflict of UIDs names",
  },
  {
    field: /answer\.(?:body\.message|invalid\.(?:details\.causes|text))/,
    actual: /json: |unmarshal|"patch"|strict decoding/i,
    reason: "what is of the wrong type is refused in the words of Go's decoder",
  },
  {
    field:
      /spec\.(?:containers\.\d+\.volumeMounts|volumes|enableServiceLinks|preemptionPolicy|priority|tolerations|serviceAccount(?:Name)?)$/,
    expected: /^undefined$/,
    reason:
      "the admission plugins ServiceAccount, Priority and DefaultTolerationSeconds are not there: nothing reads what they add to pods",
  },
];

const text = (value: unknown): string => JSON.stringify(value) ?? "undefined";

/** The row that explains the difference; `expected` is the embedded cluster's. */
function explain({ step, field, expected, actual }: Difference): Explanation | undefined {
  return EXPLAINED.find(
    (row) =>
      row.field.test(field) &&
      (row.step?.test(step) ?? true) &&
      (row.expected?.test(text(expected)) ?? true) &&
      (row.actual?.test(text(actual)) ?? true),
  );
}

interface Contrast {
  /** On the real cluster. */
  readonly entries: readonly Entry[];
  readonly calls: number;
  readonly unexplained: readonly Difference[];
  readonly explained: readonly Explanation[];
}

/** What differs in one entry; the embedded cluster's is what is expected. */
const differencesOf = (expected: Entry | undefined, actual: Entry): Difference[] =>
  compare({ "": expected ? [expected] : [] }, { "": [actual] });
const isUnexplained = (difference: Difference): boolean => explain(difference) === undefined;

/** Plays the steps at these positions on both; ends at the first step with a difference that nothing explains. */
export async function contrast(client: Client, drawn: Drawn, positions: readonly number[]): Promise<Contrast> {
  const namespace = `prog-${randomBytes(4).toString("hex")}`;
  const chosen = { ...drawn, program: positions.flatMap((position) => drawn.program.slice(position, position + 1)) };
  const expected = await playEmbedded(chosen, namespace);
  const agrees = (entry: Entry, at: number): boolean => !differencesOf(expected.entries[at], entry).some(isUnexplained);
  try {
    const actual = await play(realGround(client, agrees), chosen, { namespace, mayGoOn: agrees });
    const differences = actual.entries.flatMap((entry, at) => differencesOf(expected.entries[at], entry));
    return {
      entries: actual.entries,
      calls: actual.calls,
      unexplained: differences.filter(isUnexplained),
      explained: differences.flatMap((difference) => explain(difference) ?? []),
    };
  } finally {
    await clear(client, namespace, drawn.plurals);
  }
}

async function playEmbedded(chosen: Drawn, namespace: string): Promise<Played> {
  const { stop, ...ground } = await embeddedGround(namespace);
  try {
    return await play(ground, chosen, { namespace });
  } finally {
    await stop();
  }
}

/** How many times a program is played again, to make it shorter. */
const MAX_ATTEMPTS = 60;

/** The fewest steps that still differ in the same field. */
export async function shrinkProgram(
  client: Client,
  drawn: Drawn,
  positions: readonly number[],
  first: Contrast,
): Promise<{ readonly positions: readonly number[]; readonly result: Contrast }> {
  const field = ({ unexplained }: Contrast): string | undefined => unexplained[0]?.field;
  let best: { positions: readonly number[]; result: Contrast } = {
    positions: positions.slice(0, first.entries.length),
    result: first,
  };
  let attempts = 0;
  const mayGoOn = (): boolean => attempts < MAX_ATTEMPTS;
  await thin(best.positions, mayGoOn, async (fewer) => {
    attempts++;
    const result = await contrast(client, drawn, fewer);
    if (field(result) !== field(first)) return false;
    best = { positions: fewer, result };
    return true;
  });
  return best;
}
