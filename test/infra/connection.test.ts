/** Kubeconfigs as they are found in the field, and what each request gets from them. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { connectCluster } from "../../infra/cluster.ts";
import { loadConnection } from "../../infra/connection.ts";
import { pods } from "../../infra/resources.ts";
import { caPem, json, stage } from "./stage.ts";

const directory = mkdtempSync(join(tmpdir(), "zonewise-"));
after(() => rmSync(directory, { recursive: true }));

interface Parts {
  readonly name?: string;
  readonly cluster?: object;
  readonly user?: object;
}

let files = 0;
function kubeconfig({ name = "one", cluster = {}, user = {} }: Parts, context = name): string {
  const file = join(directory, `${files++}.json`);
  const config = {
    clusters: [{ name, cluster: { server: "https://api.test:6443", ...cluster } }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": context,
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A credential plugin that prints this. */
const exec = (script: string) => ({
  exec: { apiVersion: "client.authentication.k8s.io/v1", command: process.execPath, args: ["-e", script] },
});

const USERS: readonly [name: string, user: object, headers: object | undefined][] = [
  ["a token", { token: "t1" }, { Authorization: "Bearer t1" }],
  ["a token from a credential plugin", exec(`console.log(JSON.stringify({ status: { token: "t2" } }))`), { Authorization: "Bearer t2" }],
  ["a certificate", { "client-certificate-data": base64("cert"), "client-key-data": base64("key") }, {}],
  ["somebody else's name", { token: "t3", as: "system:admin" }, { Authorization: "Bearer t3", "Impersonate-User": "system:admin" }],
];

describe("a user with", () => {
  for (const [name, user, headers] of USERS) {
    it(`${name} is sent so`, async () => {
      const connection = await loadConnection({
        kubeconfig: kubeconfig({ user, cluster: { "certificate-authority-data": base64("ca") } }),
      });
      const options = await connection.authorize();
      assert.deepEqual(options.headers, headers);
      assert.deepEqual(options.ca, Buffer.from("ca"));
      if ("client-key-data" in user) assert.deepEqual([options.cert, options.key], [Buffer.from("cert"), Buffer.from("key")]);
    });
  }

  it("a credential plugin that fails is Unauthorized, in the plugin's words", async () => {
    const connection = await loadConnection({ kubeconfig: kubeconfig({ user: exec(`console.error("log in first"); process.exit(1)`) }) });
    await assert.rejects(connection.authorize(), (error: Error & { code?: string }) => {
      assert.equal(error.code, "Unauthorized");
      assert.match(error.message, /log in first/);
      return true;
    });
  });
});

describe("the configuration that is used", () => {
  it("is the explicit one before KUBECONFIG, with its own address for the server", async () => {
    const explicit = { apiUrl: "https://10.0.0.1:443/base", configFile: kubeconfig({ user: { token: "mine" } }) };
    const { server, authorize } = await loadConnection({ explicit, kubeconfig: kubeconfig({ user: { token: "other" } }) });
    assert.equal(server.href, "https://10.0.0.1/base");
    assert.deepEqual((await authorize()).headers, { Authorization: "Bearer mine" });
  });

  it("is put together from several files, whose first names the context", async () => {
    const first = kubeconfig({ name: "one" }, "two");
    const { server, authorize } = await loadConnection({
      kubeconfig: `${first}:${kubeconfig({ name: "two", cluster: { server: "https://second.test" }, user: { token: "2" } })}`,
    });
    assert.equal(server.hostname, "second.test");
    assert.deepEqual((await authorize()).headers, { Authorization: "Bearer 2" });
  });

  const UNUSABLE: readonly [name: string, file: string][] = [
    ["a file that is not there", join(directory, "missing")],
    ["a context that is not there", kubeconfig({}, "elsewhere")],
    ["a server that is no URL", kubeconfig({ cluster: { server: "nowhere" } })],
  ];
  for (const [name, file] of UNUSABLE) {
    it(`is BadConfiguration, naming the file, for ${name}`, async () => {
      await assert.rejects(loadConnection({ kubeconfig: file }), (error: Error & { code?: string }) => {
        assert.equal(error.code, "BadConfiguration");
        assert.ok(error.message.includes(file), error.message);
        return true;
      });
    });
  }
});

describe("a request", () => {
  it("goes below the server's own path, as behind Rancher", async () => {
    const { server, seen } = await stage([json({})]);
    const cluster = { server: `${server.origin}/k8s/clusters/c-1/`, "certificate-authority-data": base64(caPem) };
    const connection = await loadConnection({ kubeconfig: kubeconfig({ cluster }) });
    await connectCluster(connection, { timeoutMs: 5000 }).get(pods, { namespace: "ns", name: "p" });
    connection.close();
    assert.equal(seen[0]?.path, "/k8s/clusters/c-1/api/v1/namespaces/ns/pods/p");
  });

  it("goes through the cluster's proxy", async () => {
    const { server, seen } = await stage([json({})]);
    const asked: (string | undefined)[] = [];
    const proxy = createServer().on("connect", (request, socket) => {
      asked.push(request.url);
      const onward = connect(Number(server.port), server.hostname, () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
      onward.pipe(socket).pipe(onward);
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const cluster = {
      server: server.origin,
      "certificate-authority-data": base64(caPem),
      "proxy-url": `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    };
    const connection = await loadConnection({ kubeconfig: kubeconfig({ cluster }) });
    await connectCluster(connection, { timeoutMs: 5000 }).get(pods, { namespace: "ns", name: "p" });
    proxy.close();
    assert.deepEqual([asked, seen.length], [[server.host], 1]);
  });
});
