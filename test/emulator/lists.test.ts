import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../infra/kubernetes/connection.ts";
import { type PodObject, pods } from "../../infra/kubernetes/resources.ts";
import { type Pod, readPod } from "../../reconciler/model/pod.ts";
import { podJson } from "../bench/pod-list.ts";
import { dig, type Draft, listOf } from "./objects.ts";
import { configMap, CONFIG_MAPS, MERGE, startFixture, watchUntil } from "./fixture.ts";

const PODS = "/api/v1/namespaces/default/pods";

const names = (body: unknown): unknown[] => listOf(dig(body, "items")).map((item) => dig(item, "metadata", "name"));

test("the pages of a list are one snapshot, despite writes between them", async (t) => {
  const { call } = await startFixture(t);
  for (const name of ["a", "b", "c", "d"]) await call("POST", CONFIG_MAPS, configMap(name, { v: "1" }));
  const first = await call("GET", `${CONFIG_MAPS}?limit=2`);
  await call("DELETE", `${CONFIG_MAPS}/c`);
  await call("POST", CONFIG_MAPS, configMap("bb"));
  await call("PATCH", `${CONFIG_MAPS}/d`, { data: { v: "2" } }, MERGE);
  const second = await call(
    "GET",
    `${CONFIG_MAPS}?limit=2&continue=${String(dig(first.body, "metadata", "continue"))}`,
  );
  assert.deepEqual([...names(first.body), ...names(second.body)], ["a", "b", "c", "d"]);
  assert.equal(dig(listOf(dig(second.body, "items"))[1], "data", "v"), "1");
  assert.equal(dig(second.body, "metadata", "resourceVersion"), dig(first.body, "metadata", "resourceVersion"));
  assert.deepEqual(names((await call("GET", CONFIG_MAPS)).body), ["a", "b", "bb", "d"]);
});

test("a watch with a selector gets ADDED when an object begins to match and DELETED when it ceases to", async (t) => {
  const { call, client } = await startFixture(t);
  const { body } = await call("GET", CONFIG_MAPS);
  await call("POST", CONFIG_MAPS, configMap("a"));
  for (const labels of [{ see: "me" }, { see: "me", more: "x" }, { see: null }])
    await call("PATCH", `${CONFIG_MAPS}/a`, { metadata: { labels } }, MERGE);
  const path = `${CONFIG_MAPS}?watch=1&labelSelector=see&resourceVersion=${String(dig(body, "metadata", "resourceVersion"))}`;
  const events = await watchUntil(client, path, (seen) => seen.length === 3);
  assert.deepEqual(
    events.map(({ type }) => type),
    ["ADDED", "MODIFIED", "DELETED"],
  );
});

test("pods are listed in protobuf for clients that request it, and errors are too; other kinds are JSON", async (t) => {
  const { emulator, client, call } = await startFixture(t);
  const create = (name: string, more: object = {}): void => {
    const { metadata, ...pod } = JSON.parse(podJson(1)) as Pick<Draft, "metadata">;
    const { uid: _, resourceVersion: __, ...given } = metadata;
    emulator.store.create("pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...given, name, namespace: "default" },
      ...pod,
      ...more,
    });
  };
  create("a");
  create("b");
  const accept = "application/vnd.kubernetes.protobuf,application/json";
  const type = async (path: string): Promise<unknown> =>
    (await client.call({ method: "GET", path, accept })).headers["content-type"];
  assert.equal(await type(PODS), "application/vnd.kubernetes.protobuf");
  assert.equal(await type(`${PODS}?continue=x`), "application/vnd.kubernetes.protobuf");
  assert.deepEqual(await Promise.all([type(`${PODS}/a`), type(CONFIG_MAPS)]), ["application/json", "application/json"]);

  const folder = await mkdtemp(join(tmpdir(), "emulator-"));
  t.after(() => rm(folder, { recursive: true }));
  await emulator.writeKubeconfig(join(folder, "kubeconfig"));
  const connection = await loadConnection({ kubeconfig: join(folder, "kubeconfig") });
  t.after(() => connection.close());
  const inProtobuf: Pod[] = [];
  for await (const { items } of connectCluster(connection, { timeoutMs: 5000 }).list(pods, {
    namespace: "default",
    pageSize: 1,
  }))
    inProtobuf.push(...items.map(readPod));
  const inJson = listOf(dig((await call("GET", PODS)).body, "items")) as readonly PodObject[];
  assert.deepEqual(inProtobuf, inJson.map(readPod));

  // A server may always respond with JSON.
  create("c", { spec: { containers: [], unknownToTheTables: true } });
  assert.equal(await type(PODS), "application/json");
});

test("a client gets the requested representation: an object's metadata, a list's, or a table", async (t) => {
  const { call, client } = await startFixture(t);
  await call("POST", CONFIG_MAPS, configMap("a", { k: "v" }));
  const as = (kind: string): string => `application/json;as=${kind};g=meta.k8s.io;v=v1`;
  const one = await client.call({ method: "GET", path: `${CONFIG_MAPS}/a`, accept: as("PartialObjectMetadata") });
  assert.deepEqual([dig(one.body, "kind"), dig(one.body, "data")], ["PartialObjectMetadata", undefined]);
  const list = await client.call({ method: "GET", path: CONFIG_MAPS, accept: as("PartialObjectMetadataList") });
  assert.deepEqual([dig(list.body, "kind"), names(list.body)], ["PartialObjectMetadataList", ["a"]]);
  const table = await client.call({ method: "GET", path: CONFIG_MAPS, accept: as("Table") });
  assert.deepEqual(dig(listOf(dig(table.body, "rows"))[0], "cells"), ["a", "0s"]);
});

test("a namespace is deleted with all objects in it", async (t) => {
  const { call, client } = await startFixture(t);
  await call("POST", "/api/v1/namespaces", { metadata: { name: "gone" } });
  await call("POST", "/api/v1/namespaces/gone/configmaps", configMap("a"));
  const { body } = await call("DELETE", "/api/v1/namespaces/gone");
  assert.equal(dig(body, "status", "phase"), "Terminating");
  const late = await call("POST", "/api/v1/namespaces/gone/configmaps", configMap("late"));
  assert.ok([403, 404].includes(late.status));
  await watchUntil(
    client,
    "/api/v1/namespaces?watch=1&resourceVersion=1&fieldSelector=metadata.name%3Dgone",
    (events) => events.some(({ type }) => type === "DELETED"),
  );
  assert.deepEqual(names((await call("GET", "/api/v1/configmaps")).body), []);
});
