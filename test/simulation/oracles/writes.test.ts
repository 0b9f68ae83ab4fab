/** The oracle of single writes against requests that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createWriteSafety } from "./writes.ts";

const NAMESPACED = "/namespaces/zonewise";
const SET = `/apis/apps/v1${NAMESPACED}/statefulsets/a`;
const POD = `/api/v1${NAMESPACED}/pods/a-0`;
const WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/x";
const versioned = { metadata: { resourceVersion: "1" } };
const preconditions = { uid: "u", resourceVersion: "1" };

const CASES: readonly (readonly [name: string, method: string, path: string, body: object, says?: RegExp])[] = [
  ["a patch of a StatefulSet without a version", "PATCH", SET, { spec: {} }, /without the version/],
  ["a patch of a StatefulSet with one", "PATCH", SET, versioned],
  [
    "a JSON patch that tests the version",
    "PATCH",
    WEBHOOKS,
    [{ op: "test", path: "/metadata/resourceVersion", value: "1" }],
  ],
  ["a replacement without a version", "PUT", "/api/v1/secrets/x", { metadata: {} }, /version/],
  ["a patch of a pod without its UID", "PATCH", POD, versioned, /without the UID/],
  ["a patch of a pod with it", "PATCH", POD, { metadata: { uid: "u" } }],
  ["a deletion with both", "DELETE", `${POD}?timeout=1ms`, { preconditions }],
  ["a deletion without a version", "DELETE", POD, { preconditions: { uid: "u" } }, /may not have judged/],
  ["a call into another namespace", "POST", "/api/v1/namespaces/other/events", {}, /another namespace/],
];

describe("the oracle of writes", () => {
  const judge = (actor: string, [method, path, body]: readonly [string, string, object]): string => {
    const violations: string[] = [];
    const { onRequest } = createWriteSafety({ violated: (what) => void violations.push(what) });
    onRequest({ actor, call: `${method} ${path}` }, method, path, JSON.stringify(body));
    return violations.join("; ");
  };
  for (const [name, method, path, body, says] of CASES)
    it(`${says ? "condemns" : "accepts"} ${name}`, () =>
      assert.match(judge("reconciler-1", [method, path, body]), says ?? /^$/));

  it("accepts what others write", () => assert.equal(judge("human", ["PATCH", SET, {}]), ""));
});
