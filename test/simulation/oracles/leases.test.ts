/** The oracle of the reconcilers' Lease against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { createLeaseSafety } from "./leases.ts";
import { NAMESPACE } from "../names.ts";
import { make, stored } from "../../builders.ts";

const [ONE, TWO] = ["reconciler-1", "reconciler-2"];
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
const NAME = "zonewise-reconciler";

interface State {
  readonly holder?: string;
  readonly renewed?: number;
  readonly since?: number;
  readonly successor?: string;
}

const lease = ({ holder = "", renewed = 0, since = 0, successor = "" }: State, name = NAME): KubeObject =>
  stored(
    make("Lease", name, {
      namespace: NAMESPACE,
      annotations: { "zonewise/successor": successor },
      spec: {
        holderIdentity: holder && `${holder}_x`,
        leaseDurationSeconds: 15,
        renewTime: new Date(renewed).toISOString(),
        acquireTime: new Date(since).toISOString(),
      },
    }),
  );

/**
 * A history as lines: `one takes, at 5000, one renews, two reads, two asks 75 times`. A line that ends in a status was
 * answered with it. Times are milliseconds since the beginning; the Lease lasts for 15 s.
 */
function judge(history: string): string {
  const violations: string[] = [];
  let now = 0;
  let stored: KubeObject | undefined;
  const oracle = createLeaseSafety({
    violated: (what) => void violations.push(what),
    now: () => now,
    isQuiet: () => true,
  });
  const store = (object: KubeObject, actor: string): void =>
    oracle.onEvent(
      { type: "MODIFIED", resource: "leases.coordination.k8s.io", object, ...(stored && { previous: stored }) },
      { actor, call: "", sentAt: now },
    );
  const read = (actor: string, status = 200): void => {
    const caller = { actor, call: "", sentAt: now };
    oracle.onSent(caller, "GET", `${LEASES}/${NAME}`);
    oracle.onAnswered(caller, "GET", `${LEASES}/${NAME}`, "", status);
  };
  const write = (actor: string, state: State, status = 200): void => {
    const object = lease(state);
    const caller = { actor, call: "", sentAt: now };
    const path = `${LEASES}/${NAME}`;
    oracle.onSent(caller, "PUT", path, JSON.stringify(object));
    if (status < 300) {
      store(object, actor);
      stored = object;
    }
    oracle.onAnswered(caller, "PUT", path, JSON.stringify(object), status);
  };
  const ACTS: Readonly<Record<string, (actor: string, status: number | undefined, rest: string) => void>> = {
    takes: (actor, status) => write(actor, { holder: actor }, status),
    "takes again": (actor, status) => write(actor, { holder: actor, since: now }, status),
    renews: (actor, status) => write(actor, { holder: actor, renewed: now }, status),
    /** What is stored, with the announcement that two waits. */
    announces: (actor, status) => write(actor, { holder: ONE, successor: `${TWO}_x` }, status),
    releases: (actor, status) => write(actor, {}, status),
    reads: (actor, status) => read(actor, status),
    /** Every 200 ms from now on. */
    asks: (actor, _, times) => {
      const from = now;
      for (let i = 0; i < Number.parseInt(times, 10); i++) {
        now = from + 200 * i;
        read(actor);
      }
    },
    sends: (actor, _, call) => {
      const [method = "", path = ""] = call.split(" ");
      oracle.onSent({ actor, call, sentAt: now }, method, path);
    },
    "takes the Lease of downscales": (actor) => store(lease({ holder: "u" }, "zonewise-downscale-1"), actor),
    "gives the Lease of downscales back": (actor) => store(lease({}, "zonewise-downscale-1"), actor),
  };
  const ACTORS: Readonly<Record<string, string>> = { one: ONE, two: TWO, webhook: "webhooks-1" };
  const names = Object.keys(ACTS).toSorted((a, b) => b.length - a.length);
  for (const line of history.split(", ")) {
    const [who = "", ...words] = line.split(" ");
    const text = words.join(" ");
    const [, status] = /: (\d{3})$/.exec(text) ?? [];
    const act = names.find((name) => text === name || text.startsWith(`${name} `) || text.startsWith(`${name}:`));
    if (who === "at") now = Number(text);
    else
      ACTS[act ?? assert.fail(line)]?.(
        ACTORS[who] ?? "",
        status ? Number(status) : undefined,
        text.slice(act?.length).trim(),
      );
  }
  return violations.join("; ");
}

const CASES: readonly (readonly [name: string, history: string, says?: RegExp])[] = [
  ["a Lease that is renewed", "one takes, at 5000, one renews"],
  [
    "a renewal over an announcement",
    "one takes, two announces, at 1, one renews",
    /reconciler-1 writes its Lease over what reconciler-2 has written/,
  ],
  ["a renewal after a refusal", "one takes, two announces, at 1, one renews: 409, one renews"],
  ["a Lease that its holder has lost, and takes again", "one takes, two announces, at 9, one takes again"],
  [
    "a Lease that was read unchanged for its duration",
    "one takes, two announces, two asks 75 times, at 15000, two takes",
  ],
  [
    "one that was read for less than that",
    "one takes, two reads, at 14999, two takes",
    /reconciler-2 takes the Lease of reconciler-1_x, which it has seen for 14999 ms only/,
  ],
  [
    "one that was renewed meanwhile",
    "one takes, two reads, at 7000, one renews, two reads, at 21000, two takes",
    /seen for 14000 ms only/,
  ],
  [
    "a write after the Lease was given back",
    "one takes, one releases, one sends PUT /zoneawarepoddisruptionbudgets/x/status",
    /reconciler-1 sends PUT .* after it has given its Lease back/,
  ],
  ["an Event", "one takes, one releases, one sends POST /events"],
  ["a write under another Lease", "one takes, one releases, one takes, one sends DELETE /pods/a-0"],
  [
    "a write after another name was read",
    "two takes, one reads, at 21, one sends DELETE /pods/a-0",
    /reconciler-1 sends DELETE .* after it has read that another has the Lease/,
  ],
  [
    "a request whose time is up",
    "webhook sends GET /pods/a-0?timeout=-3ms",
    /webhooks-1 sends GET .* 3 ms after its time was up/,
  ],
  ["a request in time", "webhook sends GET /pods/a-0?timeout=3ms"],
  [
    "a pod that is prepared under the Lease of downscales",
    "webhook takes the Lease of downscales, at 14999, webhook sends POST http://a-0/prepare",
  ],
  [
    "one that is prepared after it",
    "webhook takes the Lease of downscales, at 15000, webhook sends POST http://a-0/prepare",
    /webhooks-1 sends POST .* without the Lease of its group's downscales/,
  ],
  [
    "one whose preparation ends after the Lease was given back",
    "webhook takes the Lease of downscales, webhook gives the Lease of downscales back, webhook sends DELETE http://a-0/prepare",
    /without the Lease/,
  ],
];

describe("the oracle of the Lease", () => {
  for (const [name, history, says] of CASES)
    it(`${says ? "condemns" : "accepts"} ${name}`, () => assert.match(judge(history), says ?? /^$/));
});
