import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldSelector, labelSelector, objectSelector } from "./selectors.ts";

const LABELS = { app: "web", tier: "1", "example.com/zone": "a" };

const SELECTORS: readonly [text: string, matches: boolean][] = [
  ["", true],
  ["app=web", true],
  ["app==web", true],
  ["app=db", false],
  ["app!=web", false],
  ["other!=x", true],
  ["app", true],
  ["!app", false],
  ["!other", true],
  ["app in (db, web)", true],
  ["app notin (db,web)", false],
  ["other notin (x)", true],
  ["app=web,tier=2", false],
  ["app in (web),!other,example.com/zone=a", true],
];

for (const [text, matches] of SELECTORS)
  test(`label selector ${JSON.stringify(text)} is ${matches}`, () =>
    assert.equal(labelSelector(text)(LABELS), matches));

for (const text of ["a===", "a in b", "=x", "a b", "(a)"])
  test(`label selector ${JSON.stringify(text)} is refused`, () =>
    assert.throws(() => labelSelector(text), { message: /unable to parse/ }));

const OBJECTS: readonly [title: string, selector: unknown, matches: boolean][] = [
  ["none matches nothing", undefined, false],
  ["an empty one matches all", {}, true],
  ["labels", { matchLabels: { app: "web" } }, true],
  ["expressions", { matchExpressions: [{ key: "app", operator: "In", values: ["db"] }] }, false],
  ["existence", { matchExpressions: [{ key: "app", operator: "Exists" }] }, true],
  ["absence", { matchLabels: { app: "web" }, matchExpressions: [{ key: "app", operator: "DoesNotExist" }] }, false],
];

for (const [title, selector, matches] of OBJECTS)
  test(`object selector: ${title}`, () => assert.equal(objectSelector(selector)(LABELS), matches));

const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "n", uid: "", resourceVersion: "", creationTimestamp: "" },
  spec: { nodeName: "node-1" },
  status: { phase: "Running" },
};

const FIELDS: readonly [text: string, matches: boolean][] = [
  ["metadata.name=p", true],
  ["metadata.namespace!=n", false],
  ["spec.nodeName=node-1,status.phase!=Failed", true],
  ["status.phase==Pending", false],
];

for (const [text, matches] of FIELDS)
  test(`field selector ${text} is ${matches}`, () => assert.equal(fieldSelector("pods", text)(POD), matches));

test("Events are selected by their component and their reason", () => {
  const event = { ...POD, kind: "Event", reason: "PodReplaced", reportingComponent: "zonewise" };
  assert.equal(fieldSelector("events", "reportingComponent=zonewise,reason!=ZoneUpdated")(event), true);
  assert.equal(fieldSelector("events", "reportingComponent=kubelet")(event), false);
});

test("fields that are not selectable are refused", () => {
  assert.throws(() => fieldSelector("pods", "spec.x=1"), { message: "field label not supported: spec.x" });
  assert.throws(() => fieldSelector("configmaps", "data.x=1"), {
    message: '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
  });
});
