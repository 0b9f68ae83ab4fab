/** The oracle of the reconcilers' Lease against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { createLeaseSafety } from "./leases.ts";
import { NAMESPACE } from "../names.ts";
import type { Process } from "../process.ts";
import { make, stored } from "../../builders.ts";

const [ONE, TWO] = ["reconciler-1", "reconciler-2"];
const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
const NAME = "zonewise-reconciler";
const SECOND_MS = 1000;

interface State {
  readonly holder?: string;
  readonly renewed?: number;
  readonly since?: number;
  readonly successor?: string;
  readonly seconds?: number | undefined;
}

const lease = ({ holder = "", renewed = 0, since = 0, successor = "", ...rest }: State, name = NAME): KubeObject =>
  stored(
    make("Lease", name, {
      namespace: NAMESPACE,
      annotations: { "zonewise/successor": successor },
      spec: {
        holderIdentity: holder && `${holder}_x`,
        leaseDurationSeconds: "seconds" in rest ? rest.seconds : 15,
        renewTime: new Date(renewed).toISOString(),
        acquireTime: new Date(since).toISOString(),
      },
    }),
  );

interface Tools {
  /** From now on it is so many milliseconds since the beginning. */
  readonly at: (ms: number) => void;
  /** The Lease is read, and so it is found. */
  readonly read: (actor: string, status?: number) => void;
  /** The Lease is written, and so it is stored, unless it is refused. */
  readonly write: (actor: string, state: State, status?: number, method?: string) => void;
  /** Any other request. */
  readonly send: (actor: string, call: string) => void;
  readonly downscale: (actor: string, holder: string) => void;
}

/** `TWO` asks every 200 ms from this time on, so many times. */
function ask({ at, read }: Tools, from: number, times: number): void {
  for (let i = 0; i < times; i++) {
    at(from + 200 * i);
    read(TWO);
  }
}

function judge(play: (tools: Tools) => void, stoodStillMs = 0): string {
  const violations: string[] = [];
  let now = 0;
  let stored: KubeObject | undefined;
  const process = (name: string): Process => ({ name, stoodStillMs: () => stoodStillMs }) as unknown as Process;
  const oracle = createLeaseSafety({
    violated: (what) => void violations.push(what),
    now: () => now,
    processes: () => [process(ONE), process(TWO)],
    isQuiet: () => true,
  });
  const store = (object: KubeObject, actor: string): void =>
    oracle.onEvent(
      { type: "MODIFIED", resource: "leases.coordination.k8s.io", object, ...(stored && { previous: stored }) },
      { actor, call: "", sentAt: now },
    );
  play({
    at: (ms) => void (now = ms),
    read(actor, status = 200) {
      const caller = { actor, call: "", sentAt: now };
      oracle.onSent(caller, "GET", `${LEASES}/${NAME}`);
      oracle.onAnswered(caller, "GET", `${LEASES}/${NAME}`, "", status);
    },
    write(actor, state, status = 200, method = "PUT") {
      const object = lease(state);
      const caller = { actor, call: "", sentAt: now };
      const path = method === "POST" ? LEASES : `${LEASES}/${NAME}`;
      oracle.onSent(caller, method, path, JSON.stringify(object));
      if (status < 300) {
        store(object, actor);
        stored = object;
      }
      oracle.onAnswered(caller, method, path, JSON.stringify(object), status);
    },
    send: (actor, call) => oracle.onSent({ actor, call, sentAt: now }, ...splitCall(call)),
    downscale: (actor, holder) => store(lease({ holder }, "zonewise-downscale-1"), actor),
  });
  return violations.join("; ");
}

function splitCall(call: string): [method: string, path: string] {
  const [method = "", path = ""] = call.split(" ");
  return [method, path];
}

const HELD = { holder: ONE };
const WAITS = `${TWO}_x`;
const CASES: readonly (readonly [name: string, play: (tools: Tools) => void, says: RegExp, stoodStillMs?: number])[] = [
  [
    "a Lease that is renewed",
    ({ at, write }) => (write(ONE, HELD), at(5 * SECOND_MS), write(ONE, { ...HELD, renewed: 5 * SECOND_MS })),
    /^$/,
  ],
  [
    "a renewal over an announcement",
    ({ write }) => (write(ONE, HELD), write(TWO, { ...HELD, successor: WAITS }), write(ONE, { ...HELD, renewed: 1 })),
    /reconciler-1 writes its Lease over what reconciler-2 has written/,
  ],
  [
    "a renewal after a refusal",
    ({ at, write }) => (
      write(ONE, HELD),
      write(TWO, { ...HELD, successor: WAITS }),
      at(1),
      write(ONE, { ...HELD, renewed: 1 }, 409),
      write(ONE, { ...HELD, renewed: 1 })
    ),
    /^$/,
  ],
  [
    "a Lease that its holder has lost, and takes again",
    ({ write }) => (write(ONE, HELD), write(TWO, { ...HELD, successor: WAITS }), write(ONE, { ...HELD, since: 9 })),
    /^$/,
  ],
  ["a Lease that is made", ({ read, write }) => (read(ONE, 404), write(ONE, HELD, 201, "POST")), /^$/],
  [
    "one that is made although it was there",
    ({ read, write }) => (write(ONE, HELD), read(TWO), write(TWO, HELD, 409, "POST")),
    /reconciler-2 makes a Lease that it has read/,
  ],
  [
    "a process that writes the Lease of another for nothing",
    ({ write }) => (write(ONE, HELD), write(TWO, HELD)),
    /reconciler-2 writes the Lease of reconciler-1_x, and does not say that it waits/,
  ],
  [
    "a process that waits and does not say so",
    (tools) => (tools.write(ONE, HELD), ask(tools, 0, 75), tools.at(15_000), tools.write(TWO, { holder: TWO })),
    /does not say so/,
  ],
  [
    "a Lease that was read unchanged for its duration",
    (tools) => (
      tools.write(ONE, HELD),
      tools.write(TWO, { ...HELD, successor: WAITS }),
      ask(tools, 0, 75),
      tools.at(15_000),
      tools.write(TWO, { holder: TWO })
    ),
    /^$/,
  ],
  [
    "one that was read for less than that",
    ({ at, read, write }) => (write(ONE, HELD), read(TWO), at(14_999), write(TWO, { holder: TWO })),
    /reconciler-2 takes the Lease of reconciler-1_x, which it has seen for 14999 ms only/,
  ],
  [
    "one that was renewed meanwhile",
    ({ at, read, write }) => (
      write(ONE, HELD),
      read(TWO),
      at(7000),
      write(ONE, { ...HELD, renewed: 7000 }),
      read(TWO),
      at(21_000),
      write(TWO, { holder: TWO })
    ),
    /seen for 14000 ms only/,
  ],
  [
    "a process that is refused as it takes a Lease that has expired",
    (tools) => {
      tools.write(ONE, { ...HELD, successor: WAITS });
      ask(tools, 20_000, 76);
      tools.write(TWO, { holder: TWO }, 409);
      ask(tools, 35_200, 1);
    },
    /^$/,
  ],
  [
    "a process that does not take a Lease that has expired",
    (tools) => (tools.write(ONE, { ...HELD, successor: WAITS }), ask(tools, 20_000, 80)),
    /reconciler-2 goes on to wait for reconciler-1_x, which it has not seen renew its Lease for 15\d00 ms/,
  ],
  [
    "one that waits too long for a Lease without its duration",
    (tools) => (tools.write(ONE, { ...HELD, successor: WAITS, seconds: undefined }), ask(tools, 20_000, 80)),
    /which it has not seen renew its Lease for 15\d00 ms/,
  ],
  [
    "one that has stood still",
    (tools) => (tools.write(ONE, { ...HELD, successor: WAITS }), ask(tools, 20_000, 80)),
    /^$/,
    1,
  ],
  [
    "a process whose release is refused, and that tries again",
    ({ write, read }) => (write(ONE, HELD), write(ONE, {}, 409), read(ONE), write(ONE, {})),
    /^$/,
  ],
  [
    "one that does not",
    ({ write, read, at }) => (write(ONE, HELD), write(ONE, {}, 409), read(ONE), at(2000), read(ONE)),
    /reconciler-1 does not give its Lease back, as it was refused once/,
  ],
  [
    "a write after the Lease was given back",
    ({ write, send }) => (write(ONE, HELD), write(ONE, {}), send(ONE, "PUT /zoneawarepoddisruptionbudgets/x/status")),
    /reconciler-1 sends PUT .* after it has given its Lease back/,
  ],
  ["an Event", ({ write, send }) => (write(ONE, HELD), write(ONE, {}), send(ONE, "POST /events")), /^$/],
  [
    "a write under another Lease",
    ({ write, send }) => (write(ONE, HELD), write(ONE, {}), write(ONE, HELD), send(ONE, "DELETE /pods/a-0")),
    /^$/,
  ],
  [
    "a write after another name was read",
    ({ at, write, read, send }) => (write(TWO, { holder: TWO }), read(ONE), at(21), send(ONE, "DELETE /pods/a-0")),
    /reconciler-1 sends DELETE .* after it has read that another has the Lease/,
  ],
  [
    "a request whose time is up",
    ({ send }) => send("webhooks-1", "GET /pods/a-0?timeout=-3ms"),
    /webhooks-1 sends GET .* 3 ms after its time was up/,
  ],
  ["a request in time", ({ send }) => send("webhooks-1", "GET /pods/a-0?timeout=3ms"), /^$/],
  [
    "a pod that is prepared under the Lease of downscales",
    ({ at, downscale, send }) => (
      downscale("webhooks-1", "u"),
      at(14_999),
      send("webhooks-1", "POST http://a-0/prepare")
    ),
    /^$/,
  ],
  [
    "one that is prepared after it",
    ({ at, downscale, send }) => (
      downscale("webhooks-1", "u"),
      at(15_000),
      send("webhooks-1", "POST http://a-0/prepare")
    ),
    /webhooks-1 sends POST .* without the Lease of its group's downscales/,
  ],
  [
    "one whose preparation ends after the Lease was given back",
    ({ downscale, send }) => (
      downscale("webhooks-1", "u"),
      downscale("webhooks-1", ""),
      send("webhooks-1", "DELETE http://a-0/prepare")
    ),
    /without the Lease/,
  ],
];

describe("the oracle of the Lease", () => {
  for (const [name, play, says, stoodStillMs] of CASES)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(judge(play, stoodStillMs), says));
});
