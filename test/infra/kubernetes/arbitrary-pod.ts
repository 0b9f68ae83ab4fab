/** Pods as JSON has them, with any of the fields that are read and no others. */
import fc from "fast-check";
import { formatTimestamp } from "../../../infra/timestamp.ts";

const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 });
const time = fc
  .date({ min: new Date("0001-01-01T00:00:01Z"), max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true })
  .map((date) => formatTimestamp(date.getTime()));
const part = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(fields, { requiredKeys: [], noNullPrototype: true });
const list = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: 1, maxLength: 3 });
const map = fc.dictionary(fc.stringMatching(/^[a-z][-a-z./]{0,20}$/), fc.string({ unit: "grapheme" }), {
  minKeys: 1,
  maxKeys: 4,
  noNullPrototype: true,
});
const container = fc.record(
  { ready: fc.boolean(), state: part({ waiting: part({ reason: text }), running: part({ startedAt: time }) }) },
  { requiredKeys: ["ready"], noNullPrototype: true },
);

export const arbitraryPod = part({
  metadata: part({
    name: text,
    namespace: text,
    uid: text,
    resourceVersion: text,
    deletionTimestamp: time,
    labels: map,
    annotations: map,
    ownerReferences: list(part({ apiVersion: text, kind: text, name: text, uid: text, controller: fc.boolean() })),
  }),
  status: part({
    phase: fc.constantFrom("Running", "Pending", "Failed"),
    startTime: time,
    conditions: list(
      part({
        type: fc.constantFrom("Ready", "PodScheduled"),
        status: fc.constantFrom("True", "False"),
        lastTransitionTime: time,
        reason: text,
      }),
    ),
    containerStatuses: list(container),
    initContainerStatuses: list(container),
  }),
});
