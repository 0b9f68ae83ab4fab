/** The oracle of published headroom against worlds that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { createHeadroomOracle } from "./headroom.ts";
import { BUDGETS } from "../names.ts";

const [ZONE, POD] = ["ingester-zone-a", "ingester-zone-a-0"];

interface Given {
  /** Evictions that are allowed of the zone, by the budget's status. */
  readonly published?: number;
  /** What the webhook answers; undefined if it is not asked. */
  readonly allowed?: boolean;
  readonly ready?: boolean;
  readonly status?: number;
  /** The pod that the webhook is asked about. */
  readonly asked?: string;
}

async function look({ published, allowed, ready = true, status = 200, asked = POD }: Given): Promise<string> {
  const violations: string[] = [];
  const oracle = createHeadroomOracle((what) => void violations.push(what));
  const metadata = { uid: "u", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" };
  const zones = [{ name: ZONE, ...(published !== undefined && { disruptionsAllowed: published }) }];
  const budget = { apiVersion: "x/v1", kind: "Budget", metadata: { ...metadata, name: "b" }, status: { zones } };
  const conditions = [{ type: "Ready", status: ready ? "True" : "False" }];
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { ...metadata, name: POD, labels: { name: ZONE } } };
  const store = {
    get: (resource: string) => (resource === BUDGETS ? (budget as KubeObject) : undefined),
    list: () => [{ ...pod, status: { conditions } } as KubeObject],
  };
  const ask = async () => {
    if (allowed !== undefined)
      oracle.onReview({
        path: "/admission/mutate-pod-eviction",
        sent: JSON.stringify({ request: { name: asked, dryRun: true } }),
        status,
        answer: JSON.stringify({ response: { allowed } }),
      });
    return { status: allowed === false ? 429 : 201, body: {} };
  };
  await oracle.look({ store, ask }, [ZONE]);
  return violations.join("; ");
}

describe("the oracle of published headroom", () => {
  const CASES: readonly (readonly [name: string, given: Given, says: RegExp])[] = [
    ["one that is allowed and denied", { published: 1, allowed: false }, /1 evictions of .* and one of .* is denied/],
    ["none that is allowed and is", { published: 0, allowed: true }, /0 evictions of .* and one of .* is allowed/],
    ["some that are allowed and are", { published: 2, allowed: true }, /^$/],
    ["none that is allowed and none is", { published: 0, allowed: false }, /^$/],
    ["what is not published", { allowed: true }, /^$/],
    ["what nobody judges", { published: 0 }, /^$/],
    ["a webhook that fails", { published: 1, allowed: false, status: 500 }, /^$/],
    ["an eviction of somebody else", { published: 1, allowed: false, asked: "other-0" }, /^$/],
    ["a zone without a ready pod", { published: 1, allowed: false, ready: false }, /^$/],
  ];
  for (const [name, given, says] of CASES)
    it(`${says.source === "^$" ? "allows" : "condemns"} ${name}`, async () => assert.match(await look(given), says));
});
