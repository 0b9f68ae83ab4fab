/** The oracle of the certificate against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Draft } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { createCertificateSafety } from "./safety.ts";
import { CONFIGURATIONS, OTHER_INJECTOR, SECRET, secretObject } from "./trust.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const MINUTE_MS = 60_000;
/** Two certificates of an hour, the first of which has been valid for 40 minutes, for 46, or for 55. */
const [OLD, OVERDUE, SPENT, NEW] = (await Promise.all(
  [40, 46, 55, 0].map((spentMinutes) => secretObject({ spentMinutes }, START)),
)) as [Draft, Draft, Draft, Draft];
const dataOf = (secret: Draft): Readonly<Record<string, string>> => secret["data"] as Readonly<Record<string, string>>;

const object = (name: string, fields: object): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: "" },
  ...fields,
});

interface Given {
  readonly by?: string;
  readonly from?: Draft;
  readonly to?: Draft;
  /** For which the configuration has had the bundle of both. */
  readonly trustedMs?: number;
  readonly spoilt?: boolean;
}

function judge({ by = "certificates-1", from = OLD, to = NEW, trustedMs = 30_000, spoilt = false }: Given): string {
  const violations: string[] = [];
  let now = START - 10 * MINUTE_MS;
  const oracle = createCertificateSafety({ violated: (what) => void violations.push(what), now: () => now });
  const [resource = ""] = CONFIGURATIONS;
  const trust = (bundle: string, actor: string): void =>
    oracle.onEvent(
      { type: "MODIFIED", resource, object: object("hooks", { webhooks: [{ clientConfig: { caBundle: bundle } }] }) },
      { actor, call: "" },
    );
  const [old, next] = [from, to].map((secret) => Buffer.from(dataOf(secret)["ca.crt"] ?? "", "base64").toString());
  trust(Buffer.from(old ?? "").toString("base64"), "certificates-1");
  now = START - trustedMs;
  trust(Buffer.from(`${old}${next}`).toString("base64"), spoilt ? "human" : "certificates-1");
  now = START;
  const [before, after] = [from, to].map((secret) => object(SECRET, { data: dataOf(secret) }));
  if (before && after)
    oracle.onEvent({ type: "MODIFIED", resource: "secrets", object: after, previous: before }, { actor: by, call: "" });
  return violations.join("; ");
}

/** The bundle of a configuration that names another injector changes. */
function judgeForeign(actor: string): string {
  const violations: string[] = [];
  const oracle = createCertificateSafety({ violated: (what) => void violations.push(what), now: () => START });
  const [resource = ""] = CONFIGURATIONS;
  const having = (caBundle: string): KubeObject => {
    const plain = object("hooks", { webhooks: [{ clientConfig: { caBundle } }] });
    return { ...plain, metadata: { ...plain.metadata, annotations: { [OTHER_INJECTOR]: "a/b" } } };
  };
  const event = { type: "MODIFIED", resource, object: having("YQ=="), previous: having("Yg==") } as const;
  oracle.onEvent(event, { actor, call: "" });
  return violations.join("; ");
}

describe("the oracle of the certificate", () => {
  it("condemns a reconciler that changes the bundle of another injector", () =>
    assert.match(judgeForeign("reconciler-1"), /reconciler-1 changes the bundle of hooks, which another injector/));
  it("accepts that injector itself", () => assert.equal(judgeForeign("cert-manager"), ""));
  for (const [name, given, says] of [
    ["a certificate that all have trusted for half a minute", {}, /^$/],
    [
      "one that they have trusted for less",
      { trustedMs: 29_999 },
      /certificates-1 serves a certificate that hooks has trusted for 29999 ms only/,
    ],
    ["one in the place of another that is about to expire", { from: SPENT, trustedMs: 1 }, /^$/],
    ["one whose configuration somebody has just written", { trustedMs: 1, spoilt: true }, /^$/],
    ["one that a reconciler replaces", { by: "reconciler-1" }, /reconciler-1 replaces a certificate that is left to/],
    ["one that a reconciler replaces as the job is overdue", { by: "reconciler-1", from: OVERDUE }, /^$/],
    [
      "one that a reconciler replaces by another that is not trusted yet",
      { by: "reconciler-1", from: OVERDUE, trustedMs: 1 },
      /reconciler-1 serves a certificate that hooks has trusted for 1 ms only/,
    ],
    ["a reconciler that leaves it as it is", { by: "reconciler-1", to: OLD }, /^$/],
  ] as const)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(judge(given), says));
});
