import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ErrorCode, RolloutError } from "../../../infra/errors.ts";
import { announceKind, createOptionalKind } from "../../../infra/kubernetes/optional-kind.ts";
import type { Log } from "../../../infra/log.ts";

const FACTS = { capability: "gates", definition: "the definition rolloutgates.zonewise.dev" };
const OFF = "gates are off: the definition rolloutgates.zonewise.dev is not installed";
const ON = "gates are on";

function keepInfo() {
  const lines: string[] = [];
  const log: Pick<Log, "info"> = { info: (message) => void lines.push(message) };
  return { log: log as Log, lines };
}

function begin() {
  const { log, lines } = keepInfo();
  let now = 5000;
  let asked = 0;
  const kind = createOptionalKind({ ...FACTS, againAfterMs: 1000 }, { clock: { monotonic: () => now }, log });
  return {
    lines,
    kind,
    pass: (ms: number) => void (now += ms),
    asked: () => asked,
    read: (fails?: ErrorCode) =>
      kind.read(async () => {
        asked++;
        if (fails) throw new RolloutError(fails, "said the API server");
        return "objects";
      }),
  };
}

describe("a kind whose definition may be missing", () => {
  it("is asked for once in a while when it is missing, with one line", async () => {
    const { kind, pass, read, asked, lines } = begin();
    for (let ms = 0; ms < 2500; ms += 500) {
      assert.equal(await read("NotFound"), undefined);
      assert.equal(kind.isMissing(), true);
      pass(500);
    }
    assert.deepEqual([asked(), lines], [3, [OFF]]);
  });

  it("is back with the next question once it is installed, with another line, as often as it comes and goes", async () => {
    const { kind, pass, read, lines } = begin();
    for (let i = 0; i < 2; i++) {
      await read("NotFound");
      pass(999);
      assert.equal(await read(), undefined);
      pass(1);
      assert.equal(kind.isMissing(), true, "nobody has looked yet");
      assert.equal(await read(), "objects");
      assert.equal(kind.isMissing(), false);
    }
    assert.deepEqual(lines, [OFF, ON, OFF, ON]);
  });

  it("is not missing because it could not be read", async () => {
    const { kind, read, asked } = begin();
    for (const code of ["Timeout", "Forbidden", "ServerError"] as const) await assert.rejects(read(code), { code });
    assert.deepEqual([kind.isMissing(), asked()], [false, 3]);
  });
});

it("a kind that is asked for every time has a line a change", () => {
  const { log, lines } = keepInfo();
  const note = announceKind(FACTS, log);
  for (const isFound of [true, false, false, true, true, false]) note(isFound);
  assert.deepEqual(lines, [OFF, ON, OFF]);
});
