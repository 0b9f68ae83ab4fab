/** One line of JSON per entry, for any logged value. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RolloutError } from "../../infra/errors.ts";
import { createLog, type LogLevel } from "../../infra/log.ts";

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

function capture(level: LogLevel = "debug") {
  const lines: string[] = [];
  const log = createLog({ level, write: (line) => lines.push(line), now: () => new Date("2026-01-02T03:04:05.678Z") });
  return { log, lines, entries: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

describe("the log", () => {
  it("writes time, level, message and fields, in this order, on one line", () => {
    const { log, lines } = capture();
    log.info("pod\nreplaced", { pod: "zone-a-0", revision: undefined, bytes: 7n });
    assert.deepEqual(lines, [
      '{"ts":"2026-01-02T03:04:05.678Z","level":"info","msg":"pod\\nreplaced","pod":"zone-a-0","bytes":"7"}\n',
    ]);
  });

  for (const [index, level] of LEVELS.entries()) {
    it(`at level ${level} drops what is less important`, () => {
      const { log, entries } = capture(level);
      for (const each of LEVELS) log[each]("x");
      assert.deepEqual(
        entries().map((entry) => entry["level"]),
        LEVELS.slice(index),
      );
    });
  }

  it("asks for fields that are given as a function, and only if the entry is written", () => {
    const { log, entries } = capture("info");
    log.debug("x", () => assert.fail("below the level"));
    log.info("x", () => ({ pod: "zone-a-0" }));
    assert.deepEqual(
      entries().map(({ msg, pod }) => [msg, pod]),
      [["x", "zone-a-0"]],
    );
  });

  it("shows an error's code, message and chain of causes, wherever it is", () => {
    const { log, entries } = capture();
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    const error = new RolloutError("Unreachable", "get pods", { cause: refused });
    log.error("failed", {
      error,
      groups: [{ error: new RolloutError("Conflict", "stale", { cause: { reason: "Conflict" } }) }],
    });
    assert.deepEqual(entries()[0]?.["error"], {
      code: "Unreachable",
      message: "get pods",
      cause: { code: "ECONNREFUSED", message: "connect ECONNREFUSED" },
    });
    assert.deepEqual(entries()[0]?.["groups"], [
      { error: { code: "Conflict", message: "stale", cause: { reason: "Conflict" } } },
    ]);
  });

  it("lets no field pass for the time, the level or the message", () => {
    const { log, entries } = capture();
    log.warn("real", { msg: "false", level: "debug", ts: "never" });
    assert.deepEqual(entries(), [{ ts: "2026-01-02T03:04:05.678Z", level: "warn", msg: "real" }]);
  });

  it("survives a ring of objects and a ring of causes", () => {
    const { log, entries } = capture();
    const ring: Record<string, unknown> = {};
    ring["self"] = ring;
    const error = new Error("a");
    error.cause = error;
    log.error("ring", { ring });
    log.error("causes", { error });
    assert.match(String(entries()[0]?.["unloggable"]), /circular/);
    assert.equal(entries()[1]?.["msg"], "causes");
  });

  it("as logfmt writes key=value pairs, with quotes where they are needed and the path of what is inside an object", () => {
    const lines: string[] = [];
    const log = createLog({
      level: "info",
      format: "logfmt",
      write: (line) => lines.push(line),
      now: () => new Date("2026-01-02T03:04:05.678Z"),
    });
    log.debug("dropped");
    log.info("pod\nreplaced", {
      pod: "zone-a-0",
      empty: "",
      none: null,
      count: 2,
      names: ["a", "b"],
      "a key": "a=b",
      none_at_all: undefined,
    });
    const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    log.error("failed", { error: new RolloutError("Unreachable", "get pods", { cause: refused }) });
    assert.deepEqual(lines, [
      String.raw`ts=2026-01-02T03:04:05.678Z level=info msg="pod\nreplaced" pod=zone-a-0 empty="" none=null count=2 names="[\"a\",\"b\"]" a_key="a=b"` +
        "\n",
      'ts=2026-01-02T03:04:05.678Z level=error msg=failed error.code=Unreachable error.message="get pods" error.cause.code=ECONNREFUSED error.cause.message="connect ECONNREFUSED"\n',
    ]);
  });
});
