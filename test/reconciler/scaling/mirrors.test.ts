/** Zones that mirror the replicas of another resource (§2.4, §2.5), at once or after a delay (§2.6). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ZoneTraits } from "../../builders/zones.ts";
import { type Facts, scale } from "./adapter.ts";
import { decide, delayed, factsOf, force, mirror, mirrorOf, type More, whyNot } from "./scene.ts";
import { NO_WRITE_BACK } from "./mirror-stage.ts";

type Case = readonly [name: string, zones: readonly ZoneTraits[], facts: More, expected: string];

const API_VERSION = "grafana.com/rollout-mirror-replicas-from-resource-api-version";
const KIND = "grafana.com/rollout-mirror-replicas-from-resource-kind";
const GONE = mirrorOf("gone");

const CASES: readonly Case[] = [
  ["grows, and writes back", [mirror(2)], { t: [5, 2] }, "scale a to 5, write back 5"],
  ["shrinks", [mirror(5)], { t: [2, 2] }, "scale a to 2"],
  ["shrinks to nothing as the only zone of its group", [mirror(3)], { t: [0, 3] }, "scale a to 0, write back 0"],
  ["comes back", [mirror(0)], { t: [3, 0] }, "scale a to 3, write back 3"],
  ["is forced", [mirror(2, force(7))], { t: [5, 2] }, "scale a to 7, write back 7"],
  ["is as wanted, and written back", [mirror(2)], { t: [2, 5] }, "write back 2"],
  ["is reported already", [mirror(2)], { t: [2, 2] }, ""],
  ["is not written back where that is turned off", [mirror(2, NO_WRITE_BACK)], { t: [2, 5] }, ""],
  ["is written back once, even if that fails", [mirror(2)], { t: [2, 5], refused: "t" }, ""],
  [
    "waits, and is not written back, if it is refused",
    [mirror(2)],
    { t: [5, 6], refused: "ingester-zone-a" },
    "ScaleRefused",
  ],
  [
    "leaves its turn to the next zone if it is refused",
    [mirror(2), mirror(2)],
    { t: [5, 5], refused: "ingester-zone-a" },
    "scale b to 5, ScaleRefused",
  ],
  ["waits if its reference cannot be read", [mirror(2, GONE)], {}, "ReferenceUnreadable"],
  [
    "leaves its turn to the next one then",
    [mirror(2, GONE), mirror(2)],
    { t: [5, 5] },
    "scale b to 5, ReferenceUnreadable",
  ],
  [
    "waits if the server does not know the kind",
    [mirror(2, { [KIND]: "Unknown" })],
    { t: [5, 5] },
    "ReferenceUnreadable",
  ],
  [
    "waits if its API version has two slashes",
    [mirror(2, { [API_VERSION]: "a/b/c" })],
    { t: [5, 5] },
    "ReferenceUnreadable",
  ],
  [
    "reads the preferred version: only the group of the API version counts",
    [mirror(2, { [API_VERSION]: "rollout-operator.grafana.com/v999" })],
    { t: [5, 5] },
    "scale a to 5",
  ],
  // As the scale is read again, the third zone sees that the second has written it back.
  [
    "changes one at a time, and none without annotations",
    [{ replicas: 1 }, mirror(5), mirror(5), mirror(2)],
    { t: [5, 2] },
    "write back 5, scale d to 5",
  ],
  ["goes to 0 replicas before another does", [mirror(3), mirror(3)], { t: [0, 3] }, "scale a to 0, write back 0"],
  ["goes to 0 replicas beside one of no pods", [mirror(0), mirror(3)], { t: [0, 0] }, "scale b to 0"],
];

describe("a zone that mirrors", () => {
  for (const [name, zones, facts, expected] of CASES)
    it(`${name}: ${expected}`, async () => assert.equal(await decide(zones, facts), expected));

  it("a name with a slash is told so", async () =>
    assert.match(
      (await whyNot([mirror(2, mirrorOf("x/proxy/y"))])) ?? "",
      /annotation grafana\.com\/rollout-mirror-replicas-from-resource-name is "x\/proxy\/y": no object has such a name/,
    ));
});

/** Pods that have been prepared for so many minutes; an hour is needed. */
const prepared =
  (minutes: Readonly<Record<string, number>>): NonNullable<Facts["answers"]> =>
  (pod) =>
    minutes[pod];
const KEPT = "keep a-0 a-1 a-2";
const REFUSED = `${KEPT}, prepare a-3, PrepareFailed`;
const PREPARED = `${KEPT}, prepare a-3 a-4`;
const OLD = { answers: () => 70 };
const bothOf = (minutes: Readonly<Record<string, number>>): More => ({ t: [3, 5], answers: prepared(minutes) });

const DELAYED: readonly Case[] = [
  [
    "keeps the pods that stay, prepares those that go, and shrinks once their delay is over",
    [delayed(5)],
    { t: [3, 5], ...OLD },
    `${PREPARED}, scale a to 3, write back 3`,
  ],
  ["also keeps them if nothing is to change", [delayed(2)], { t: [2, 2] }, "keep a-0 a-1"],
  [
    "also if no pod stays: requests in flight for others have to end",
    [delayed(2)],
    { t: [0, 0], ...OLD },
    "keep, prepare a-0 a-1, scale a to 0",
  ],
  ["grows at once", [delayed(2)], { t: [5, 2] }, "keep a-0 a-1, scale a to 5, write back 5"],
  [
    "prepares pods if it is forced, too",
    [delayed(5, force(4))],
    { t: [3, 4], ...OLD },
    "keep a-0 a-1 a-2 a-3, prepare a-4, scale a to 4",
  ],
  ["waits for a pod that does not answer", [delayed(4)], { t: [3, 4] }, REFUSED],
  [
    "waits for a pod that refuses, regardless of its body",
    [delayed(4)],
    { t: [3, 4], answers: () => ({ status: 500, body: '{"timestamp": 1767225600}' }) },
    REFUSED,
  ],
  [
    "waits for a pod whose delay is not over",
    [delayed(5)],
    bothOf({ "a-3": 70, "a-4": 30 }),
    `${PREPARED}, DelayNotReached`,
  ],
  [
    "has its replicas written back in the meantime",
    [delayed(5)],
    { ...bothOf({ "a-3": 30, "a-4": 0 }), t: [3, 3] },
    `${PREPARED}, write back 5, DelayNotReached`,
  ],
  [
    "needs no more than exactly the delay",
    [delayed(5)],
    bothOf({ "a-3": 60, "a-4": 60 }),
    `${PREPARED}, scale a to 3, write back 3`,
  ],
  [
    "shrinks as far as the delays are over",
    [delayed(5)],
    bothOf({ "a-3": 30, "a-4": 70 }),
    `${PREPARED}, scale a to 4, write back 4`,
  ],
  [
    "loses only pods after the last one whose delay is not over",
    [delayed(5)],
    { t: [1, 5], answers: prepared({ "a-1": 75, "a-2": 30, "a-3": 75, "a-4": 70 }) },
    "keep a-0, prepare a-1 a-2 a-3 a-4, scale a to 3, write back 3",
  ],
  [
    "judges its last pods in whatever order they answer",
    [delayed(5)],
    { t: [3, 5], answers: async (pod) => (pod === "a-3" ? await new Promise((give) => setImmediate(give, 30)) : 10) },
    `${PREPARED}, DelayNotReached`,
  ],
  [
    "does not shrink to what its reference wanted before the pods answered",
    [delayed(5)],
    { t: [3, 5], ...OLD, templatesLater: { t: [4, 5] } },
    PREPARED,
  ],
  [
    "does not shrink if its reference cannot be read any more",
    [delayed(5)],
    { t: [3, 5], ...OLD, templatesLater: {} },
    `${PREPARED}, ReferenceUnreadable`,
  ],
  [
    "waits, and leaves its turn to another",
    [delayed(5), delayed(5)],
    { t: [3, 5], answers: (pod) => (pod.startsWith("b") ? 70 : 0) },
    `${PREPARED}, keep b-0 b-1 b-2, prepare b-3 b-4, scale b to 3, write back 3, DelayNotReached`,
  ],
];

const delayedBy = (delay: string, url: string): ZoneTraits =>
  delayed(5, {
    "grafana.com/rollout-delayed-downscale": delay,
    "grafana.com/rollout-prepare-delayed-downscale-url": url,
  });

describe("a zone that mirrors with a delay", () => {
  for (const [name, zones, facts, expected] of DELAYED)
    it(`${name}: ${expected}`, async () => assert.equal(await decide(zones, facts), expected));

  for (const [delay, url] of [
    ["", "http://pod/"],
    ["1h", ""],
    ["0", "http://pod/"],
    ["0s", "http://pod/"],
  ] as const)
    it(`has none by delay "${delay}" and URL "${url}"`, async () =>
      assert.equal(await decide([delayedBy(delay, url)], { t: [3, 3] }), "scale a to 3"));

  for (const [delay, url] of [
    ["1.5h", "http://pod/"],
    ["-1h", "http://pod/"],
    ["soon", "http://pod/"],
    ["1h", "pod/prepare"],
    ["1h", "ftp://pod/"],
    ["1h", "http://"],
    ["1h", "ftp://me:secret@pod/"],
    ["1h", "http://me:secret@"],
  ] as const)
    it(`waits in both directions, and does not repeat a password, with delay "${delay}" and URL "${url}"`, async () => {
      for (const wanted of [3, 6]) {
        const { done, holds } = await scale(factsOf([delayedBy(delay, url)], { t: [wanted, 5] }));
        assert.deepEqual([done, holds.map(({ reason }) => reason)], [[], ["DelayInvalid"]]);
        const message = /annotation grafana\.com\/rollout-(delayed-downscale|prepare-delayed-downscale-url) is /;
        assert.match(holds[0]?.message ?? "", message);
        assert.doesNotMatch(holds[0]?.message ?? "", /secret/);
      }
    });

  for (const serviceName of ["x@127.0.0.1:1/admin?", "evil.example/", "a b", ""])
    it(`waits with serviceName "${serviceName}": the host would differ`, async () => {
      const { holds, called } = await scale(factsOf([{ ...delayed(5), serviceName }], { t: [3, 5], ...OLD }));
      const message = `ingester-zone-a is not scaled: its serviceName ${JSON.stringify(serviceName)} is not a DNS label`;
      assert.deepEqual([holds[0]?.reason, holds[0]?.message, called], ["DelayInvalid", message, []]);
    });

  for (const body of [
    "",
    "no",
    "null",
    "[]",
    "{}",
    '{"timestamp": 0}',
    '{"timestamp": -5}',
    '{"timestamp": 1.5}',
    '{"timestamp": "1767355200"}',
    '{"timestamp": 1e300}',
    '{"timestamp": 253402300800}',
    '{"timestamp": 1767225600000}',
  ])
    it(`waits for a pod whose answer has no Unix seconds: ${JSON.stringify(body)}`, async () =>
      assert.equal(await decide([delayed(4)], { t: [3, 4], answers: () => ({ body }) }), REFUSED));

  it("says for which pod it waits, and how long", async () => {
    const young = (minutes: number) => whyNot([delayed(5)], bothOf({ "a-3": 70, "a-4": minutes }));
    assert.equal(await young(0), "zone-a waits: zone-a-4 was prepared 0s ago, 1h left of 1h");
    assert.equal(
      await young(-10),
      "zone-a waits: zone-a-4 was prepared at 2026-01-02T12:10:00Z, which is in the future, and 1h are needed",
    );
  });

  it("calls the pods by their names, from the first ordinal on, and keeps the rest of the URL", async () => {
    const called = async (url: string): Promise<unknown> =>
      (await scale(factsOf([{ ...delayedBy("1h", url), replicas: 2, start: 7 }], { t: [1, 2], ...OLD }))).called;
    const service = "ingester-zone-a.test.svc.cluster.local.";
    for (const [url, scheme, rest] of [
      ["http://example.com/a", "http://", "/a"],
      ["http://example.com:8080/a", "http://", ":8080/a"],
      ["https://me:word@example.com:8443/a/b?c=d#e", "https://me:word@", ":8443/a/b?c=d#e"],
    ] as const)
      assert.deepEqual(
        await called(url),
        [7, 8].map((ordinal) => `${scheme}ingester-zone-a-${ordinal}.${service}${rest}`),
      );
  });

  it("calls of more pods than memory can hold only enough to know that one refuses, and repeats nothing of its answer", async () => {
    const answers = () => ({ status: 500, body: "secret" });
    const facts = factsOf([delayed(2 ** 31 - 1)], { t: [1, 0], answers, pods: [] });
    const { called, holds } = await scale(facts);
    assert.ok(called.length <= 33, String(called.length));
    assert.match(
      holds[0]?.message ?? "",
      /a pod could not be prepared: ingester-zone-a-1 at http:\S+: it answered 500, and the answer is not \{"timestamp": <Unix seconds>\}$/,
    );
  });
});
