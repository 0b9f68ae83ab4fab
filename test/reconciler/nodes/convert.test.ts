import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { answerConversion, convertShadow } from "../../../reconciler/nodes/convert.ts";

const GROUP = "brupop.bottlerocket.aws";
const metadata = {
  name: "brs-node-1",
  namespace: "brupop-bottlerocket-aws",
  uid: "u-1",
  ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "node-1", uid: "n-1" }],
};
const v1Status = (current_state: string) => ({ current_version: "1.8.0", target_version: "1.9.0", current_state });
const v2Status = (current_state: string, rest = {}) => ({
  ...v1Status(current_state),
  crash_count: 0,
  state_transition_failure_timestamp: null,
  ...rest,
});
const object = (version: string, spec: object, status?: object, more = {}) => ({
  apiVersion: `${GROUP}/${version}`,
  kind: "BottlerocketShadow",
  metadata: { ...metadata, ...more },
  spec,
  ...(status && { status }),
});
const stateOf = (converted: { readonly [key: string]: unknown }) => (converted["spec"] as { state: string }).state;

describe("a conversion", () => {
  for (const [from, to] of [
    ["v1 Idle", "v2 Idle"],
    ["v1 StagedUpdate", "v2 StagedAndPerformedUpdate"],
    ["v1 PerformedUpdate", "v2 StagedAndPerformedUpdate"],
    ["v1 RebootedIntoUpdate", "v2 RebootedIntoUpdate"],
    ["v1 MonitoringUpdate", "v2 MonitoringUpdate"],
    ["v2 Idle", "v1 Idle"],
    ["v2 StagedAndPerformedUpdate", "v1 StagedUpdate"],
    ["v2 RebootedIntoUpdate", "v1 RebootedIntoUpdate"],
    ["v2 MonitoringUpdate", "v1 MonitoringUpdate"],
    ["v2 ErrorReset", "v1 MonitoringUpdate"],
  ] as const)
    it(`makes ${to} of ${from}`, () => {
      const [[before, state], [version, after]] = [from, to].map((text) => text.split(" ")) as [string[], string[]];
      const status = before === "v1" ? v1Status(state ?? "") : v2Status(state ?? "", { crash_count: 3 });
      const converted = convertShadow(object(before ?? "", { state }, status), version === "v1" ? "v1" : "v2");
      assert.equal(stateOf(converted), after);
      assert.deepEqual(converted["status"], version === "v1" ? v1Status(after ?? "") : v2Status(after ?? ""));
    });

  for (const [state_transition_timestamp, version] of [
    [null, null],
    ["2022-07-09T19:32:38.609610964+00:00", "1.8.0"],
    ["not a time", "1.8.0"],
  ])
    it(`carries ${state_transition_timestamp} and ${version} over`, () => {
      const spec = { state: "Idle", state_transition_timestamp, version };
      assert.deepEqual(convertShadow(object("v1", spec), "v2")["spec"], spec);
      assert.deepEqual(convertShadow(object("v2", spec), "v1")["spec"], spec);
    });

  it("makes absent fields explicit null, keeps the metadata, and leaves an absent status absent", () => {
    const more = { labels: { team: "a" }, annotations: { note: "b" } };
    const spec = { state: "Idle", state_transition_timestamp: null, version: null };
    const [v1, v2] = [object("v1", spec, undefined, more), object("v2", spec, undefined, more)];
    assert.deepEqual(convertShadow(object("v1", { state: "Idle" }, undefined, more), "v2"), v2);
    assert.deepEqual(convertShadow(object("v2", { state: "Idle" }, undefined, more), "v1"), v1);
  });
});

/** Objects as JSON.parse makes them. */
const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }, options: { requiredKeys?: (keyof T)[] } = {}) =>
  fc.record<T>(model, { ...options, noNullPrototype: true });
const dictionary = (constraints = {}) =>
  fc.dictionary(fc.string(), fc.string(), { noNullPrototype: true, ...constraints });

describe("there and back", () => {
  const state = {
    v1: ["Idle", "StagedUpdate", "PerformedUpdate", "RebootedIntoUpdate", "MonitoringUpdate"],
    v2: ["Idle", "StagedAndPerformedUpdate", "RebootedIntoUpdate", "MonitoringUpdate", "ErrorReset"],
  };
  const spec = (version: "v1" | "v2") =>
    record({
      state: fc.constantFrom(...state[version]),
      state_transition_timestamp: fc.option(fc.string()),
      version: fc.option(fc.string()),
    });
  const more = record(
    {
      labels: dictionary(),
      annotations: dictionary({ minKeys: 1 }),
    },
    { requiredKeys: [] },
  );
  const v2 = record(
    {
      crash_count: fc.nat(),
      state_transition_failure_timestamp: fc.option(fc.string()),
      boot_id: fc.string(),
      rebooting: record({ boot_id: fc.string(), at: fc.string() }),
      drain: record({ remaining: fc.nat() }),
    },
    { requiredKeys: ["crash_count", "state_transition_failure_timestamp"] },
  );

  it("loses nothing of a v2 object", () =>
    fc.assert(
      fc.property(spec("v2"), fc.constantFrom(...state.v2), v2, more, (spec, current, rest, more) => {
        const before = object("v2", spec, { ...v1Status(current), ...rest }, more);
        assert.deepEqual(convertShadow(convertShadow(before, "v1"), "v2"), before);
      }),
    ));

  it("loses nothing of a v1 object", () =>
    fc.assert(
      fc.property(spec("v1"), fc.constantFrom(...state.v1), more, (spec, current, more) => {
        const before = object("v1", spec, v1Status(current), more);
        assert.deepEqual(convertShadow(convertShadow(before, "v2"), "v1"), before);
      }),
    ));

  it("holds the fields of a v2 status only while the state is unchanged", () => {
    const v1 = convertShadow(
      object("v2", { state: "Idle" }, v2Status("ErrorReset", { crash_count: 3, boot_id: "b" })),
      "v1",
    );
    assert.deepEqual(convertShadow(v1, "v2")["status"], v2Status("ErrorReset", { crash_count: 3, boot_id: "b" }));
    assert.deepEqual(convertShadow({ ...v1, status: v1Status("Idle") }, "v2")["status"], v2Status("Idle"));
  });

  it("takes no harm from a stash that somebody has edited", () => {
    for (const text of ["{", "[]", "null", "7", '{"status":7}'])
      assert.deepEqual(
        convertShadow(
          object("v1", { state: "Idle" }, v1Status("Idle"), { annotations: { "zonewise.dev/converted-from": text } }),
          "v2",
        )["status"],
        v2Status("Idle"),
      );
  });
});

describe("a ConversionReview", () => {
  const review = (desiredAPIVersion: string, objects: readonly object[]) => ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "ConversionReview",
    request: { uid: "r-1", desiredAPIVersion, objects },
  });
  it("is answered with its objects in their order, those of the version untouched", () => {
    const objects = ["MonitoringUpdate", "Idle", "RebootedIntoUpdate"].map((state) => object("v1", { state }));
    const one = object("v2", { state: "Idle" });
    assert.deepEqual(answerConversion(review(`${GROUP}/v2`, [...objects, one])), {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "ConversionReview",
      response: {
        uid: "r-1",
        result: { status: "Success" },
        convertedObjects: [...objects.map((each) => convertShadow(each, "v2")), one],
      },
    });
  });

  for (const [title, desired, objects, message] of [
    [
      "an unknown version",
      `${GROUP}/-v2`,
      [],
      `desired version ${GROUP}/-v2 is not a valid BottlerocketShadow version`,
    ],
    [
      "an object without a version",
      `${GROUP}/v2`,
      [{ kind: "BottlerocketShadow" }],
      `the objects could not be converted to ${GROUP}/v2: apiVersion undefined is not a version of BottlerocketShadow`,
    ],
  ] as const)
    it(`fails as a whole for ${title}`, () => {
      const { response } = answerConversion(review(desired, [...objects, object("v1", { state: "Idle" })])) as {
        response: object;
      };
      assert.deepEqual(response, { uid: "r-1", result: { status: "Failure", message }, convertedObjects: [] });
    });

  for (const body of [undefined, {}, { kind: "AdmissionReview" }, { apiVersion: "x", kind: "ConversionReview" }])
    it(`is not ${JSON.stringify(body)}`, () => assert.equal(answerConversion(body), undefined));
});
