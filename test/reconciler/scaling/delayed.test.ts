import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { foldAges, planPreparation, readDelay, readPreparedAt, shrinkTo } from "../../../reconciler/scaling/delayed.ts";
import { statefulSetObject, zone, type ZoneTraits } from "../builders.ts";
import { readZone, withPods } from "../../../reconciler/model/zone.ts";

const NOW = Date.UTC(2026, 0, 2, 12);
const MINUTE = 60_000;

const delayed = (delay: string, url = "http://pod/prepare-delayed-downscale"): ZoneTraits => ({
  annotations: {
    "grafana.com/rollout-delayed-downscale": delay,
    "grafana.com/rollout-prepare-delayed-downscale-url": url,
  },
});

function delayOf(traits: ZoneTraits) {
  const delay = readDelay(zone(traits));
  assert.ok(delay && "url" in delay);
  return delay;
}

describe("a zone's delay", () => {
  for (const [delay, url] of [
    ["", "http://pod/"],
    ["1h", ""],
    ["0", "http://pod/"],
    ["0s", "http://pod/"],
  ] as const)
    it(`is none: ${delay} ${url}`, () => assert.equal(readDelay(zone(delayed(delay, url))), undefined));

  it("is Prometheus' duration", () => assert.equal(delayOf(delayed("1d12h")).ms, 36 * 60 * MINUTE));

  for (const [delay, url] of [
    ["1.5h", "http://pod/"],
    ["-1h", "http://pod/"],
    ["soon", "http://pod/"],
    ["1h", "pod/prepare"],
    ["1h", "ftp://pod/"],
    ["1h", "http://"],
  ] as const) {
    it(`cannot be read: ${delay} ${url}`, () => {
      const hold = readDelay(zone(delayed(delay, url)));
      assert.ok(hold && "reason" in hold);
      assert.equal(hold.reason, "DelayInvalid");
      assert.match(
        hold.message,
        /annotation grafana\.com\/rollout-(delayed-downscale|prepare-delayed-downscale-url) is /,
      );
    });
  }

  it("does not repeat the password of a URL that cannot be read", () => {
    for (const url of ["ftp://me:secret@pod/", "http://me:secret@", "http://pod:secret/?token=secret"]) {
      const hold = readDelay(zone(delayed("1h", url)));
      assert.ok(hold && "reason" in hold);
      assert.doesNotMatch(hold.message, /secret/);
    }
  });

  for (const serviceName of ["x@127.0.0.1:1/admin?", "evil.example/", "a b", ""])
    it(`cannot be used with serviceName "${serviceName}": the host would differ`, () => {
      const hold = readDelay({ ...zone(delayed("1h")), serviceName });
      assert.ok(hold && "reason" in hold);
      assert.equal(hold.reason, "DelayInvalid");
      assert.equal(
        hold.message,
        `ingester-zone-a is not scaled: its serviceName ${JSON.stringify(serviceName)} is not a DNS label`,
      );
    });
});

describe("the pods to call", () => {
  const plan = (traits: ZoneTraits, wanted: number, url?: string, domain = "cluster.local.") => {
    const all = { ...traits, ...delayed("1h", url) };
    return planPreparation(zone(all), wanted, { url: delayOf(all).url, clusterDomain: domain });
  };
  const ordinals = (endpoints: Iterable<{ pod: string }>): string[] =>
    [...endpoints].map(({ pod }) => pod.replace("ingester-zone-a-", ""));

  for (const [name, replicas, wanted, stay, leave] of [
    ["shrinks", 3, 1, ["0"], ["1", "2"]],
    ["grows", 2, 5, ["0", "1"], []],
    ["stays", 2, 2, ["0", "1"], []],
    ["goes", 2, 0, [], ["0", "1"]],
  ] as const) {
    it(`a zone that ${name}: ${replicas} to ${wanted}`, () => {
      const { staying, leaving } = plan({ replicas }, wanted);
      assert.deepEqual([ordinals(staying), ordinals(leaving)], [stay, leave]);
      assert.deepEqual([staying.count, leaving.count], [stay.length, leave.length]);
    });
  }

  it("replaces the host by the pod's name, and keeps the rest", () => {
    const url = (configured: string, domain?: string): string | undefined =>
      [...plan({ replicas: 1 }, 0, configured, domain).leaving][0]?.url;
    const host = "ingester-zone-a-0.ingester-zone-a.test.svc.cluster.local.";
    assert.equal(url("http://example.com/a"), `http://${host}/a`);
    assert.equal(url("http://example.com:8080/a"), `http://${host}:8080/a`);
    assert.equal(url("https://me:word@example.com:8443/a/b?c=d#e"), `https://me:word@${host}:8443/a/b?c=d#e`);
    assert.equal(
      url("http://pod/a", "cluster.example"),
      "http://ingester-zone-a-0.ingester-zone-a.test.svc.cluster.example/a",
    );
  });

  it("builds the pods' names one by one: there may be more than memory can hold", () => {
    const { staying, leaving } = plan({}, 1);
    const many = planPreparation({ ...zone(delayed("1h")), replicas: 2 ** 31 - 1 }, 1, {
      url: delayOf(delayed("1h")).url,
      clusterDomain: "cluster.local.",
    });
    assert.deepEqual([ordinals(staying), leaving.count], [["0"], 2]);
    assert.equal(many.leaving.count, 2 ** 31 - 2);
    const [first] = many.leaving;
    assert.equal(first?.pod, "ingester-zone-a-1");
  });

  it("uses the Service's name from the spec, and counts from the first ordinal", () => {
    const object = statefulSetObject({ replicas: 2, ...delayed("1h") });
    const set = withPods(
      readZone({ ...object, spec: { ...object.spec, serviceName: "ring", ordinals: { start: 7 } } as never }),
      [],
    );
    const delay = readDelay(set);
    assert.ok(delay && "url" in delay);
    assert.deepEqual(
      Array.from(
        planPreparation(set, 1, { url: delay.url, clusterDomain: "cluster.local." }).leaving,
        ({ url }) => url,
      ),
      ["http://ingester-zone-a-8.ring.test.svc.cluster.local./prepare-delayed-downscale"],
    );
  });
});

describe("the time of a pod's preparation", () => {
  it("is Unix seconds", () => assert.equal(readPreparedAt('{"timestamp": 1767355200, "x": 1}'), 1_767_355_200_000));
  const nothing = [
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
  ];
  for (const body of nothing)
    it(`is not in ${JSON.stringify(body)}`, () => assert.equal(readPreparedAt(body), undefined));
});

describe("the lowest replicas of a shrinking zone", () => {
  const shrink = (replicas: number, ...minutesAgo: number[]): string | number => {
    const set = { replicas, ...delayed("1h") };
    const delay = delayOf(set);
    const shrinkInOrder = (order: readonly (readonly [place: number, minutes: number])[]) => {
      const ages = foldAges(delay);
      for (const [place, minutes] of order) ages.add(place, NOW - minutes * MINUTE, NOW);
      return shrinkTo(zone(set), { count: order.length, youngest: ages.youngest() }, { ms: delay.ms, now: NOW });
    };
    const order = [...minutesAgo.entries()];
    const to = shrinkInOrder(order);
    assert.deepEqual(shrinkInOrder(order.toReversed()), to, "in whatever order the pods answer");
    return typeof to === "number" ? to : to.message;
  };
  it("all delays are over", () => assert.equal(shrink(5, 70, 70), 3));
  it("exactly the delay is enough", () => assert.equal(shrink(5, 60, 60), 3));
  it("none is over", () =>
    assert.equal(shrink(5, 30, 0), "ingester-zone-a waits: ingester-zone-a-4 was prepared 0s ago, 1h left of 1h"));
  it("the last one is not over", () =>
    assert.equal(shrink(5, 70, 0), "ingester-zone-a waits: ingester-zone-a-4 was prepared 0s ago, 1h left of 1h"));
  it("only those after the last unfinished one are removed", () => assert.equal(shrink(5, 75, 30, 75, 70), 3));
  it("a time in the future is not over, and is reported as such", () =>
    assert.equal(
      shrink(5, 70, -10),
      "ingester-zone-a waits: ingester-zone-a-4 was prepared at 2026-01-02T12:10:00Z, which is in the future, and 1h are needed",
    ));
});
