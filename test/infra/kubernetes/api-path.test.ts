/** The paths of the original's tests, and the paths that we make ourselves. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describePath, groupOf, pathOf } from "../../../infra/kubernetes/api-path.ts";
import { leases, pods, statefulSets } from "../../../infra/kubernetes/resources.ts";

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  "/api/v1/pods": "core/v1/pods collection",
  "/api/v1/namespaces/ns/pods": "core/v1/pods collection",
  "/api/v1/namespaces/ns/pods/p": "core/v1/pods object",
  "/api/v1/namespaces/ns/pods/p/eviction": "core/v1/pods object eviction subresource",
  "/api/v1/nodes": "core/v1/nodes collection",
  "/api/v1/nodes/n": "core/v1/nodes object",
  "/api/v1/nodes/n/status": "core/v1/nodes object status subresource",
  "/api/v1/namespaces": "core/v1/namespaces collection",
  "/api/v1/namespaces/ns": "core/v1/namespaces object",
  "/api/v1/namespaces/ns/status": "core/v1/namespaces object status subresource",
  "/api/v1/namespaces/ns/finalize": "core/v1/namespaces object finalize subresource",
  "/apis/apps/v1/statefulsets": "apps/v1/statefulsets collection",
  "/apis/apps/v1/namespaces/ns/statefulsets": "apps/v1/statefulsets collection",
  "/apis/apps/v1/namespaces/ns/statefulsets/s": "apps/v1/statefulsets object",
  "/apis/apps/v1/namespaces/ns/statefulsets/s/status": "apps/v1/statefulsets object status subresource",
  "/apis/rollout-operator.grafana.com/v1/namespaces/ns/zoneawarepoddisruptionbudgets/z":
    "rollout-operator.grafana.com/v1/zoneawarepoddisruptionbudgets object",
  "/apis/rbac.authorization.k8s.io/v1/clusterroles/c": "rbac.authorization.k8s.io/v1/clusterroles object",
  "/apis/coordination.k8s.io/v1alpha2/leasecandidates": "coordination.k8s.io/v1alpha2/leasecandidates collection",
};

const JUNK = [
  "",
  "/",
  "/api",
  "/api/",
  "/api/v1",
  "/apis",
  "/apis/apps",
  "/apis/apps/v1",
  "/version",
  "/healthz/ping",
  "/api/v1/a/b/c/d",
  "nonsense",
];

describe("a path's description", () => {
  for (const [path, description] of Object.entries(DESCRIPTIONS)) {
    it(`of ${path} is ${description}`, () => assert.equal(describePath(path), description));
  }
  for (const path of JUNK)
    it(`of ${JSON.stringify(path)}, which is junk, is itself`, () => assert.equal(describePath(path), path));
});

const GROUPS: Readonly<Record<string, string>> = {
  "/api": "core",
  "/api/v1": "core",
  "/api/v1/namespaces/ns/pods": "core",
  "/apis": "apis",
  "/apis/": "apis",
  "/apis/apps": "apps",
  "/apis/apps/v1/statefulsets": "apps",
  "/apis/coordination.k8s.io/v1/leases": "coordination.k8s.io",
  "/version": "/version",
  "/healthz/ping": "/healthz",
  "/": "/",
};

describe("a path's API group", () => {
  for (const [path, group] of Object.entries(GROUPS))
    it(`of ${path} is ${group}`, () => assert.equal(groupOf(path), group));
});

describe("the path of a resource", () => {
  const paths: readonly [string, string][] = [
    [pathOf(pods, {}), "/api/v1/pods"],
    [pathOf(pods, { namespace: "ns" }), "/api/v1/namespaces/ns/pods"],
    [pathOf(leases, { namespace: "ns", name: "l" }), "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"],
    [
      pathOf(statefulSets, { namespace: "ns", name: "s", subresource: "scale" }),
      "/apis/apps/v1/namespaces/ns/statefulsets/s/scale",
    ],
    [pathOf(pods, { namespace: "a b", name: "c?d" }), "/api/v1/namespaces/a%20b/pods/c%3Fd"],
  ];
  for (const [path, expected] of paths) it(`is ${expected}`, () => assert.equal(path, expected));
  // Servers decode a path before they split it.
  for (const name of ["x/proxy/y", "x%2Fproxy", "..", ".", "", "x".repeat(254)])
    it(`has no object named ${name.slice(0, 20)}, and no such namespace`, () => {
      for (const place of [{ namespace: "ns", name }, ...(name === "" ? [] : [{ namespace: name }])])
        assert.throws(() => pathOf(pods, place), { code: "Invalid" });
    });
});
