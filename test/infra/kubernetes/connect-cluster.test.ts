/** The port's requests, and its results from the answers. */
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { seal, writeMessage } from "../../emulator/protobuf/write.ts";
import { failure, json, type Reply, stage } from "../stage.ts";

const ref = { namespace: "cache", name: "zone-a-0" };

/** The version and the names of each page, whose parts arrive one by one: the last part has the version. */
async function pagesOf(cluster: Cluster): Promise<string[][]> {
  const pages: string[][] = [];
  let names: string[] = [];
  for await (const part of cluster.list(pods, { namespace: "cache", labelSelector: "a=b,c" })) {
    names.push(...part.items.map((item) => item.metadata?.name ?? ""));
    if (part.resourceVersion === "") continue;
    pages.push([part.resourceVersion, ...names]);
    names = [];
  }
  return pages;
}

const pageOf = (names: readonly string[], token?: string) => ({
  metadata: { resourceVersion: "9", continue: token },
  items: names.map((name) => ({ metadata: { name } })),
});

const page = (names: readonly string[], token?: string): Reply => json(pageOf(names, token));

const raw =
  (body: Buffer, code = 200): Reply =>
  (response) =>
    response.writeHead(code, { "content-type": "application/vnd.kubernetes.protobuf" }).end(body);

const protobuf = (kind: "PodList" | "Status", message: object, code = 200): Reply =>
  raw(seal(kind, writeMessage(kind, message)), code);

describe("a list", () => {
  it("follows the continuation from page to page", async () => {
    const { cluster, seen } = await stage([page(["p1", "p2"], "next/1="), page(["p3"])]);
    assert.deepEqual(await pagesOf(cluster), [
      ["9", "p1", "p2"],
      ["9", "p3"],
    ]);
    assert.deepEqual(
      seen.map(({ method, path, query }) => [method, path, query["limit"], query["labelSelector"], query["continue"]]),
      [
        ["GET", "/api/v1/namespaces/cache/pods", "500", "a=b,c", undefined],
        ["GET", "/api/v1/namespaces/cache/pods", "500", "a=b,c", "next/1="],
      ],
    );
  });

  it("requests the newest state, as a get does: none of its pages carries a resourceVersion", async () => {
    const { cluster, seen } = await stage([page(["p1"], "next"), page([]), json(pageOf([]))]);
    assert.deepEqual(await pagesOf(cluster), [["9", "p1"], ["9"]]);
    await cluster.get(pods, ref);
    assert.deepEqual(
      seen.map(({ query }) => Object.keys(query).filter((key) => key.startsWith("resourceVersion"))),
      [[], [], []],
    );
  });

  it("goes over all namespaces when none is named", async () => {
    const { cluster, seen } = await stage([json({ metadata: { resourceVersion: "3" }, items: null })]);
    for await (const { items } of cluster.list(statefulSets, {})) assert.deepEqual(items, []);
    assert.equal(seen[0]?.path, "/apis/apps/v1/statefulsets");
  });

  it("ends with Expired when its continuation has become too old, so that no two lists are mixed", async () => {
    const { cluster } = await stage([
      page(["p1", "p2"], "old"),
      failure(410, "Expired", "The provided continue parameter is too old"),
    ]);
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { items } of cluster.list(pods, { namespace: "cache" }))
        seen.push(...items.map((item) => item.metadata?.name ?? ""));
    })();
    await assert.rejects(reading, { code: "Expired", status: 410 });
    assert.deepEqual(seen, ["p1", "p2"]);
  });

  it("reads pods in protobuf where the server has it, page by page", async () => {
    const { cluster, seen } = await stage([
      protobuf("PodList", pageOf(["p1", "p2"], "next")),
      protobuf("PodList", pageOf(["p3"])),
    ]);
    assert.deepEqual(await pagesOf(cluster), [
      ["9", "p1", "p2"],
      ["9", "p3"],
    ]);
    assert.deepEqual(
      seen.map(({ headers, query }) => [headers.accept, query["continue"]]),
      [
        ["application/vnd.kubernetes.protobuf,application/json", undefined],
        ["application/vnd.kubernetes.protobuf,application/json", "next"],
      ],
    );
  });

  it("passes pods in protobuf on as they arrive, and ends with the error of a body that is cut off", async () => {
    const bytes = seal("PodList", writeMessage("PodList", pageOf(["p1", "p2"])));
    const first = bytes.indexOf("p2");
    const { promise: isRead, resolve: goOn } = Promise.withResolvers<void>();
    const cut = async (response: ServerResponse): Promise<void> => {
      response
        .writeHead(200, { "content-type": "application/vnd.kubernetes.protobuf" })
        .write(bytes.subarray(0, first));
      await isRead;
      response.destroy();
    };
    const { cluster } = await stage([(response) => void cut(response)]);
    const list = cluster.list(pods, { namespace: "cache" });
    const { value } = await list.next();
    goOn();
    assert.deepEqual(value, { items: [{ metadata: { name: "p1" } }], resourceVersion: "" });
    await assert.rejects(list.next(), { name: "RolloutError", message: /^list pods cache: / });
    assert.ok((await list.next()).done);
  });

  it("refuses a list in protobuf that ends before its last pod", async () => {
    const bytes = seal("PodList", writeMessage("PodList", pageOf(["p1", "p2"])));
    const { cluster } = await stage([raw(bytes.subarray(0, -3))]);
    const list = cluster.list(pods, { namespace: "cache" });
    assert.equal((await list.next()).value.items.length, 1);
    await assert.rejects(list.next(), { code: "ServerError", message: /not the protobuf that was asked for$/ });
  });

  it("finds the next page where the metadata come after the items, as in lists of custom resources", async () => {
    const inJson = `{"items":[{"metadata":{"name":"p1"}}],"kind":"PodList","metadata":{"continue":"next","resourceVersion":"9"}}`;
    const [items, metadata] = [
      { items: [{ metadata: { name: "p1" } }] },
      { metadata: { continue: "next", resourceVersion: "9" } },
    ];
    const bytes = seal("PodList", writeMessage("PodList", items), writeMessage("PodList", metadata));
    for (const first of [raw(bytes), (response: ServerResponse): void => void response.writeHead(200).end(inJson)]) {
      const { cluster } = await stage([first, page(["p2"])]);
      assert.deepEqual(await pagesOf(cluster), [
        ["9", "p1"],
        ["9", "p2"],
      ]);
    }
  });

  it("passes objects in JSON on as they arrive, and ends with the error of a body that is cut off", async () => {
    const { promise: isRead, resolve: goOn } = Promise.withResolvers<void>();
    const cut = async (response: ServerResponse): Promise<void> => {
      response.writeHead(200).write(`{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"p1"}},{"meta`);
      await isRead;
      response.end();
    };
    const { cluster } = await stage([(response) => void cut(response)]);
    const list = cluster.list(pods, { namespace: "cache" });
    const { value } = await list.next();
    goOn();
    assert.deepEqual(value, { items: [{ metadata: { name: "p1" } }], resourceVersion: "" });
    await assert.rejects(list.next(), {
      name: "RolloutError",
      code: "ServerError",
      message: "list pods cache: the answer is not JSON",
    });
    assert.ok((await list.next()).done);
  });

  it("reads a failure in protobuf, which is the server's answer to a request for protobuf", async () => {
    const status = {
      status: "Failure",
      message: "The provided continue parameter is too old",
      reason: "Expired",
      code: 410,
    };
    const { cluster } = await stage([protobuf("Status", status, 410)]);
    await assert.rejects(pagesOf(cluster), {
      code: "Expired",
      status: 410,
      message: "list pods cache: The provided continue parameter is too old (410 Expired)",
    });
  });

  it("refuses bytes that are not the list", async () => {
    const replies = [
      protobuf("Status", { code: 200 }),
      raw(Buffer.from("k8s\0\xff")),
      raw(Buffer.alloc(0)),
      raw(Buffer.from("{}")),
    ];
    for (const reply of replies) {
      const { cluster } = await stage([reply]);
      await assert.rejects(pagesOf(cluster), {
        code: "ServerError",
        message: "list pods cache: the answer is not the protobuf that was asked for",
      });
    }
  });

  it("requests JSON of kinds that it does not read in protobuf, and accepts nothing else", async () => {
    const { cluster, seen } = await stage([protobuf("PodList", { items: [] })]);
    await assert.rejects(cluster.list(statefulSets, {}).next(), { code: "ServerError" });
    assert.equal(seen[0]?.headers.accept, "application/json");
  });

  it("passes the text of an answer on unharmed, wherever the network cuts it", async () => {
    const bytes = Buffer.from(JSON.stringify({ metadata: { name: "zöne-€-😀" } }));
    const { cluster } = await stage([
      (response) => {
        response.writeHead(200);
        for (const byte of bytes) response.write(Buffer.of(byte));
        response.end();
      },
    ]);
    assert.equal((await cluster.get(pods, ref)).metadata?.name, "zöne-€-😀");
  });
});
