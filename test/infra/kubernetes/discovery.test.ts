import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { discoverKind } from "../../../infra/kubernetes/connect-cluster.ts";

const SERVER: Readonly<Record<string, unknown>> = {
  "/api/v1": {
    resources: [
      { name: "replicationcontrollers", kind: "ReplicationController" },
      { name: "replicationcontrollers/scale", kind: "Scale" },
    ],
  },
  "/apis/x.io": { versions: [{ version: "v1" }, { version: "v2" }], preferredVersion: { version: "v2" } },
  "/apis/x.io/v1": {
    resources: [
      { name: "things", kind: "Thing" },
      { name: "things/status", kind: "Thing" },
    ],
  },
  "/apis/x.io/v2": { resources: [{ name: "things", kind: "Thing" }] },
  "/apis/y.io": { versions: [{ version: "v1" }] },
};

describe("discovering a kind", () => {
  const cases: readonly [string, string, string, string[]][] = [
    ["a core kind", "", "ReplicationController", ["/v1 replicationcontrollers"]],
    [
      "a kind of a group, the preferred version first, without its subresources",
      "x.io",
      "Thing",
      ["x.io/v2 things", "x.io/v1 things"],
    ],
    ["a kind that the group has not", "x.io", "Other", []],
    ["a group whose only version answers nothing", "y.io", "Thing", []],
    ["a group that is not there", "z.io", "Thing", []],
  ];
  for (const [name, group, kind, expected] of cases) {
    it(name, async () => {
      const found = await discoverKind(group, kind, async (path) => SERVER[path]);
      assert.deepEqual(
        found.map((resource) => `${resource.group}/${resource.version} ${resource.plural}`),
        expected,
      );
    });
  }
});
