import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { leases, type PodObject, pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { failure, json, stage } from "../stage.ts";

const ref = { namespace: "cache", name: "zone-a-0" };

const pod: PodObject = { metadata: { name: "zone-a-0", resourceVersion: "7" } };

const WRITES: readonly {
  readonly name: string;
  readonly call: (cluster: Cluster) => Promise<unknown>;
  readonly sent: readonly [method: string, path: string, contentType: string];
  readonly body: unknown;
  readonly metadataOnly?: true;
}[] = [
  {
    name: "create posts to the collection",
    call: (cluster) => cluster.create(pods, { namespace: "cache", body: pod }),
    sent: ["POST", "/api/v1/namespaces/cache/pods", "application/json"],
    body: pod,
  },
  {
    name: "replace puts the object, whose resourceVersion is the precondition",
    call: (cluster) =>
      cluster.replace(leases, { namespace: "own", name: "lease", body: { metadata: { resourceVersion: "7" } } }),
    sent: ["PUT", "/apis/coordination.k8s.io/v1/namespaces/own/leases/lease", "application/json"],
    body: { metadata: { resourceVersion: "7" } },
  },
  {
    name: "a merge patch of a subresource",
    call: (cluster) =>
      cluster.patch(statefulSets, { ...ref, subresource: "status", type: "merge", body: { status: {} } }),
    sent: ["PATCH", "/apis/apps/v1/namespaces/cache/statefulsets/zone-a-0/status", "application/merge-patch+json"],
    body: { status: {} },
    metadataOnly: true,
  },
  {
    name: "a strategic merge patch",
    call: (cluster) => cluster.patch(pods, { ...ref, type: "strategic", body: { a: 1 } }),
    sent: ["PATCH", "/api/v1/namespaces/cache/pods/zone-a-0", "application/strategic-merge-patch+json"],
    body: { a: 1 },
    metadataOnly: true,
  },
  {
    name: "a JSON patch",
    call: (cluster) => cluster.patch(pods, { ...ref, type: "json", body: [] }),
    sent: ["PATCH", "/api/v1/namespaces/cache/pods/zone-a-0", "application/json-patch+json"],
    body: [],
    metadataOnly: true,
  },
  {
    name: "remove sends its preconditions and nothing that changes the pod's grace period",
    call: (cluster) => cluster.remove(pods, { ...ref, preconditions: { uid: "u1", resourceVersion: "7" } }),
    sent: ["DELETE", "/api/v1/namespaces/cache/pods/zone-a-0", "application/json"],
    body: { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid: "u1", resourceVersion: "7" } },
  },
];

describe("a write", () => {
  for (const { name, call, sent, body, metadataOnly } of WRITES) {
    it(name, async () => {
      const { cluster, seen } = await stage([json({ metadata: { resourceVersion: "8" } })]);
      await call(cluster);
      const [one] = seen;
      assert.deepEqual([one?.method, one?.path, one?.headers["content-type"]], sent);
      assert.deepEqual(JSON.parse(one?.body ?? ""), body);
      assert.equal(one?.headers.accept?.includes("as=PartialObjectMetadata;g=meta.k8s.io;v=v1"), metadataOnly ?? false);
      assert.equal(one?.headers.authorization, "Bearer secret");
      assert.match(one?.query["timeout"] ?? "", /^[1-5]\d{3}ms$/);
    });
  }

  it("answers with the version that results", async () => {
    const { cluster } = await stage([json({ metadata: { resourceVersion: "8" } })]);
    assert.equal(await cluster.patch(pods, { ...ref, type: "merge", body: {} }), "8");
  });
});

describe("the measurement", () => {
  it("reports path, method and status of each exchange, and `error` when there was no answer", async () => {
    const measured: string[][] = [];
    const observer = {
      answered: ({ path, method, status }: { path: string; method: string; status: string }) =>
        void measured.push([path, method, status]),
      rateLimited: () => undefined,
    };
    const { cluster } = await stage(
      [json(pod), failure(404, "NotFound", "no"), (response) => response.socket?.destroy()],
      { observer },
    );
    await cluster.get(pods, ref);
    await assert.rejects(cluster.patch(statefulSets, { ...ref, subresource: "status", type: "merge", body: {} }));
    await assert.rejects(cluster.remove(pods, { ...ref, preconditions: { uid: "u" } }));
    assert.deepEqual(measured, [
      ["core/v1/pods object", "GET", "200"],
      ["apps/v1/statefulsets object status subresource", "PATCH", "404"],
      ["core/v1/pods object", "DELETE", "error"],
    ]);
  });
});
