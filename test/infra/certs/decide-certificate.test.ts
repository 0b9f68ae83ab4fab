/** Each rule: the cases that it decides, and those that it leaves to the next rule. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { describe, it } from "node:test";
import { decideCertificates, SETTLE_MS, type Situation } from "../../../infra/certs/decide-certificate.ts";
import type { Certificates } from "../../../infra/certs/act/generate.ts";
import { composeData, readStored } from "../../../infra/certs/secret.ts";
import { DAY, issueAt, NAME, SERVICE } from "./stage.ts";
import { upstreamSecret } from "./upstream.ts";

const T0 = Date.UTC(2026, 0, 1);
const VALID_DAYS = 360;
/** In days. */
const MINUTE = 1 / 1440;
const NAMES = [SERVICE, "second.default.svc"];
const old = await issueAt(() => T0, NAMES)();
const fresh = await issueAt(() => T0 + 240 * DAY, NAMES)();
const half = await issueAt(() => T0, [SERVICE])();
const other = await issueAt(() => T0, ["other.default.svc"])();
const another = await issueAt(() => T0, ["another.default.svc"])();
const short = await issueAt(() => T0, NAMES, 90)();

interface Kept {
  readonly cas: readonly Certificates[];
  readonly serving?: Certificates;
  readonly next?: Certificates;
  /** Keys taken out or overwritten. */
  readonly but?: Readonly<Record<string, string | undefined>>;
}

const encode = (text: string): string => Buffer.from(text).toString("base64");

function holding({ cas, serving = old, next, but = {} }: Kept): Situation["stored"] {
  const composed = composeData({ cas: cas.map(({ caPem }) => new X509Certificate(caPem)), serving, next });
  const changes = Object.entries(but).map(
    ([key, text]) => [key, text === undefined ? undefined : encode(text)] as const,
  );
  const data = Object.fromEntries(
    Object.entries({ ...composed, ...Object.fromEntries(changes) }).filter(([, value]) => value !== undefined),
  );
  return readStored({ metadata: { name: NAME, namespace: "default" }, data: data as Record<string, string> });
}

type Case = readonly [
  what: string,
  stored: Situation["stored"],
  day: number,
  spreadForMs: number | undefined,
  verdict: string,
];

const both = { cas: [fresh, old], next: fresh };
const instead = { cas: [fresh, other], serving: other, next: fresh };
const waiting = { cas: [fresh, half], serving: half, next: fresh };
const neither = { cas: [another, other], serving: other, next: another };
const CASES: readonly Case[] = [
  ["no Secret", readStored(undefined), 0, undefined, "issue SecretMissing"],
  ["a Secret made empty, for us to fill", readStored({ metadata: { name: NAME } }), 0, undefined, "issue SecretEmpty"],
  ["a Secret that lacks a key", holding({ cas: [old], but: { key: undefined } }), 0, undefined, "refuse SecretDamaged"],
  ["a good pair", holding({ cas: [old] }), 0, undefined, "keep UpToDate"],
  ["a pair one day before two thirds of its time", holding({ cas: [old] }), 239, 0, "keep UpToDate"],
  ["a pair at two thirds of its time", holding({ cas: [old] }), 240, 0, "publish DueForRenewal"],
  [
    "a pair that holds for another name only",
    holding({ cas: [other], serving: other }),
    0,
    undefined,
    "issue NoNameHeld",
  ],
  ["a pair that lacks one of the names", holding({ cas: [half], serving: half }), 0, 0, "publish NameMissing"],
  ["a pair that expired", holding({ cas: [old] }), VALID_DAYS, 0, "issue Expired"],
  ["a pair made by a clock far ahead", holding({ cas: [fresh], serving: fresh }), 0, 0, "issue NotYetValid"],
  [
    "a pair that begins in 6 minutes",
    holding({ cas: [fresh], serving: fresh }),
    240 - 11 * MINUTE,
    0,
    "issue NotYetValid",
  ],
  ["a pair that begins in 4 minutes", holding({ cas: [fresh], serving: fresh }), 240 - 9 * MINUTE, 0, "keep UpToDate"],
  [
    "a good pair that waits when the serving one has not begun",
    holding({ ...both, serving: fresh, next: old }),
    0,
    undefined,
    "switch NotYetValid",
  ],
  ["a waiting pair that has not begun", holding(both), 1, SETTLE_MS, "tidy NextUnusable"],
  ["a pair whose CA is another", holding({ cas: [other] }), 0, 0, "issue CaDoesNotSign"],
  ["a waiting pair, its CA everywhere for long enough", holding(both), 240, SETTLE_MS, "switch NextTrusted"],
  ["a waiting pair, its CA everywhere just now", holding(both), 240, SETTLE_MS - 1, "wait BundleSettling"],
  ["a waiting pair, its CA not everywhere", holding(both), 240, undefined, "wait BundleNotSpread"],
  ["a waiting pair, not everywhere, shortly before the end", holding(both), 331, undefined, "switch LastCall"],
  ["a waiting pair, spreading, shortly before the end", holding(both), 331, 0, "wait BundleSettling"],
  ["a waiting pair when the serving one expired", holding(both), VALID_DAYS, undefined, "switch Expired"],
  ["a waiting pair when the serving one holds for no name", holding(instead), 240, 0, "switch NoNameHeld"],
  ["the same, its CA not everywhere", holding(instead), 240, undefined, "switch NoNameHeld"],
  ["a waiting pair when the serving one lacks a name", holding(waiting), 240, 0, "wait BundleSettling"],
  [
    "a waiting pair for a wrong name, the serving one's names wrong as well",
    holding(neither),
    1,
    SETTLE_MS,
    "issue NoNameHeld",
  ],
  [
    "a waiting pair that is old itself",
    holding({ cas: [old, fresh], next: old }),
    240,
    SETTLE_MS,
    "publish DueForRenewal",
  ],
  [
    "a waiting pair for another name, nothing due",
    holding({ cas: [old, other], next: other }),
    1,
    SETTLE_MS,
    "tidy NextUnusable",
  ],
  [
    "a waiting pair whose CA is not in the bundle",
    holding({ cas: [old], next: fresh }),
    240,
    SETTLE_MS,
    "publish DueForRenewal",
  ],
  [
    "a waiting pair that cannot be read",
    holding({ ...both, but: { "next.crt": "x" } }),
    1,
    SETTLE_MS,
    "tidy LayoutIncomplete",
  ],
  ["an expired CA beside the good one", holding({ cas: [short, old] }), 90, 0, "tidy ExpiredCa"],
  ["a CA that vouches for nothing, not expired", holding({ cas: [short, old] }), 89, 0, "keep UpToDate"],
  ["tls.crt that is not cert", holding({ cas: [old], but: { "tls.crt": "x" } }), 0, 0, "tidy LayoutIncomplete"],
];

describe("the decision about the Secret", () => {
  for (const [what, stored, day, spreadForMs, verdict] of CASES) {
    it(`${what}, day ${day}: ${verdict}`, () => {
      const { action, reason } = decideCertificates({ stored, dnsNames: NAMES, now: T0 + day * DAY, spreadForMs });
      assert.equal(`${action} ${reason}`, verdict);
    });
  }

  it("takes a Secret made by upstream for good, and completes it", async () => {
    const texts = await upstreamSecret(new Date(T0));
    const data = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, encode(text)]));
    const stored = readStored({ metadata: { name: NAME }, data });
    const { reason } = decideCertificates({ stored, dnsNames: [SERVICE], now: T0, spreadForMs: undefined });
    assert.equal(reason, "LayoutIncomplete");
  });

  const DAMAGES: readonly (readonly [what: string, but: Kept["but"], expected: RegExp])[] = [
    [
      "no ca",
      { ca: undefined },
      /^secret "rollout-operator-self-signed-certificate" in namespace "default" does not contain a ca key, delete the secret and try again$/,
    ],
    ["no cert", { cert: undefined }, /does not contain a cert key/],
    ["an empty key", { key: "" }, /does not contain a key key/],
    ["a ca that is none", { ca: "hello" }, /its key "ca" cannot be read, delete the secret and try again/],
    ["a cert cut short", { cert: old.certPem.slice(0, 100) }, /its key "cert" cannot be read/],
    [
      "a cert of rubbish",
      { cert: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" },
      /its key "cert" cannot be read/,
    ],
    ["a key that is none", { key: "hello" }, /its key "key" cannot be read/],
    ["the key of another", { key: other.keyPem }, /its key "key" is not the one of "cert"/],
  ];
  for (const [what, but, expected] of DAMAGES) {
    it(`refuses ${what}, and says where the damage is`, () => {
      const { message } = decideCertificates({
        stored: holding({ cas: [old], ...(but && { but }) }),
        dnsNames: [SERVICE],
        now: T0,
        spreadForMs: 0,
      });
      assert.match(message, expected);
    });
  }
});
