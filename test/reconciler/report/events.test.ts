import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { buildEvent, eventName } from "../../../reconciler/report/events.ts";

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

describe("the Event of an object", () => {
  const draft = (name: string, message = "m") =>
    ({
      regarding: { kind: "StatefulSet", namespace: "test", name, uid: "u" },
      type: "Warning",
      reason: "R",
      message,
    }) as const;

  it("has a name that the API server takes, however long the object's is", () => {
    for (const name of ["a", "a".repeat(253), `${"a".repeat(234)}.-b`, `${"a".repeat(62)}.`.repeat(4) + "b"]) {
      const made = eventName(draft(name));
      assert.ok(made.length <= 253 && SUBDOMAIN.test(made), made);
    }
  });

  it("has the whole name of an object whose name is not that long", () => {
    assert.match(eventName(draft("zone-a")), /^zone-a\.[0-9a-f]{16}$/);
  });

  it("has a message of 1,024 characters at most, and a name by the whole of it", () => {
    const [one, two] = ["1", "2"].map((end) => draft("zone-a", "x".repeat(5000) + end));
    assert.ok(one && two);
    assert.equal(buildEvent(one, 0, "i").message?.length, 1024);
    assert.notEqual(eventName(one), eventName(two));
  });
});
