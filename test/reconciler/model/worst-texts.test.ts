/**
 * The worst texts that a user of a namespace may write, as large as the API server stores them: each is refused by its
 * name, or only a bounded part of it is read. The table is in SECURITY.md.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseGoDuration, parsePrometheusDuration } from "../../../infra/duration.ts";
import { readQueryTarget } from "../../../infra/prometheus/target.ts";
import { fillPlaceholders } from "../../../reconciler/checks/placeholders.ts";
import { readGate } from "../../../reconciler/gates/gate.ts";
import { ANNOTATIONS } from "../../../reconciler/model/annotations.ts";
import { findWindowProblem } from "../../../reconciler/model/rollout-window.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { compilePartition } from "../../../reconciler/budget/partition.ts";
import { problemOfSelector } from "../../../reconciler/budget/zpdb.ts";
import { readPreparation } from "../../../reconciler/downscale/preparation.ts";
import { readDelay } from "../../../reconciler/scaling/delayed.ts";
import { gateObject } from "../../builders/gates.ts";
import { statefulSetObject } from "../../builders/zones.ts";

/** All annotations of an object together have 256 KiB at most. */
const SIZE = 250_000;

const zoneWith = (annotations: Record<string, string>) => readZone(statefulSetObject({ annotations }));

/** The longest text anywhere in a value. */
function longest(value: unknown): number {
  if (typeof value === "string") return value.length;
  return typeof value === "object" && value !== null ? Math.max(0, ...Object.values(value).map(longest)) : 0;
}

describe("a long annotation", () => {
  for (const name of Object.values(ANNOTATIONS))
    for (const unit of ["1-9999,", "0", "é", "http://", "a/", "[", " 1h"])
      it(`${name} of ${JSON.stringify(unit)} is named, and not kept`, () => {
        const zone = zoneWith({ [name]: unit.repeat(SIZE / unit.length) });
        assert.ok(
          zone.problems.includes(`more than 1000 characters in annotation ${name}`),
          zone.problems[0]?.slice(0, 200),
        );
        assert.ok(longest(zone) < 3000, `a text of ${longest(zone)}`);
      });

  it("of names that are not known is compared with ours three times", () => {
    const names = Array.from({ length: 6000 }, (_, i) => `zonewise.dev/rollout-${"a".repeat(20)}${i}`);
    const { problems } = zoneWith(Object.fromEntries(names.map((name) => [name, ""])));
    assert.equal(problems.length, 3);
  });

  it("with a cron expression closes the window", () => {
    const { window } = zoneWith({ "zonewise.dev/rollout-window": `* * * * * * ${"1-9999,".repeat(30_000)}1` });
    assert.match(
      findWindowProblem(window) ?? "",
      /^annotation zonewise.dev\/rollout-window is ".*": it has more than 1000 characters$/,
    );
  });

  it("with a URL for delayed downscales holds the zone", () => {
    const delay = readDelay(
      zoneWith({
        "grafana.com/rollout-delayed-downscale": "1h",
        "grafana.com/rollout-prepare-delayed-downscale-url": `http://pod/${"a".repeat(SIZE)}`,
      }),
    );
    assert.ok(delay && "message" in delay);
    assert.match(
      delay.message,
      /rollout-prepare-delayed-downscale-url is not an http or https URL of at most 1000 characters$/,
    );
  });

  it("with a path for prepare-downscale is refused", () => {
    const annotations = {
      "grafana.com/prepare-downscale-http-port": "80",
      "grafana.com/prepare-downscale-http-path": "é".repeat(SIZE),
    };
    const read = readPreparation(statefulSetObject({ annotations }));
    assert.match("problem" in read ? read.problem : "", /prepare-downscale-http-path annotation is too long/);
  });

  it("that asks a gate again is stored in part", () => {
    const object = gateObject();
    const annotations = { "zonewise.dev/retry-gate": "a/".repeat(SIZE / 2) };
    assert.equal(readGate({ ...object, metadata: { ...object.metadata, annotations } })?.retry?.length, 100);
  });
});

describe("a long field", () => {
  const TOO_LONG: readonly (readonly [string, () => string | undefined, RegExp])[] = [
    ["an expression", () => fillPlaceholders('"'.repeat(SIZE)).problem, /longer than 4096 characters/],
    ["a URL of a check", () => readQueryTarget(`http://${"é".repeat(SIZE)}`).problem, /more than 2048 characters/],
    ["a pattern", () => problemOf(compilePartition(`(${"a?".repeat(SIZE)})`, 1)), /may have 256 characters/],
    ["a selector", () => problemOfSelector({ selector: { matchLabels: labels(1001) } }), /1001 labels, more than 1000/],
  ];
  for (const [name, read, problem] of TOO_LONG)
    it(`with ${name} is refused`, () => assert.match(read() ?? "", problem));

  it("with a duration is none", () => {
    for (const text of ["0".repeat(SIZE) + "s", "1s".repeat(SIZE), `0.${"0".repeat(SIZE)}1h`]) {
      assert.equal(parseGoDuration(text), undefined);
      assert.equal(parsePrometheusDuration(text), undefined);
    }
  });
});

const problemOf = (read: ReturnType<typeof compilePartition>): string | undefined =>
  "problem" in read ? read.problem : undefined;
const labels = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, i) => [`a${i}`, "b"]));
