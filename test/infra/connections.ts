/** Kubeconfigs from the field and the resulting requests, for the sources and for the bundles. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import https from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { TLSSocket } from "node:tls";
import { after, describe, it } from "node:test";
import { certify } from "../certify.ts";
import type { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import type { loadConnection } from "../../infra/kubernetes/connection.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import { listen } from "../loopback.ts";
import { caPem, json, stage } from "./stage.ts";

const directory = mkdtempSync(join(tmpdir(), "zonewise-"));
after(() => rmSync(directory, { recursive: true }));

interface Parts {
  readonly name?: string;
  readonly cluster?: object;
  readonly user?: object;
}

let files = 0;
function write(text: string): string {
  const file = join(directory, `${files++}`);
  writeFileSync(file, text);
  return file;
}

function kubeconfig({ name = "one", cluster = {}, user = {} }: Parts, context = name): string {
  return write(
    JSON.stringify({
      clusters: [{ name, cluster: { server: "https://api.test:6443", ...cluster } }],
      users: [{ name, user }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      "current-context": context,
    }),
  );
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A credential plugin that prints this. */
const exec = (script: string) => ({
  exec: { apiVersion: "client.authentication.k8s.io/v1", command: process.execPath, args: ["-e", script] },
});

const USERS: readonly [name: string, user: object, headers: object | undefined][] = [
  ["a token", { token: "t1" }, { Authorization: "Bearer t1" }],
  [
    "a token in a file",
    { "auth-provider": { name: "tokenFile", config: { tokenFile: write("t4") } } },
    { Authorization: "Bearer t4" },
  ],
  [
    "a token from a credential plugin",
    exec(`console.log(JSON.stringify({ status: { token: "t2" } }))`),
    { Authorization: "Bearer t2" },
  ],
  ["a certificate", { "client-certificate-data": base64("cert"), "client-key-data": base64("key") }, {}],
  [
    "a certificate in files beside the kubeconfig",
    { "client-certificate": basename(write("cert")), "client-key": basename(write("key")) },
    {},
  ],
  [
    "a certificate from a credential plugin",
    exec(`console.log(JSON.stringify({ status: { clientCertificateData: "cert", clientKeyData: "key" } }))`),
    {},
  ],
  [
    "another user's name",
    { token: "t3", as: "system:admin" },
    { Authorization: "Bearer t3", "Impersonate-User": "system:admin" },
  ],
];

export interface Port {
  readonly loadConnection: typeof loadConnection;
  readonly connectCluster: typeof connectCluster;
}

/** Registers the tests of a connection `as` this is. */
export function describeConnections(as: string, { loadConnection, connectCluster }: Port): void {
  describe(`${as}: a user with`, () => {
    for (const [name, user, headers] of USERS) {
      it(`${name} is sent so`, async () => {
        const connection = await loadConnection({
          kubeconfig: kubeconfig({ user, cluster: { "certificate-authority-data": base64("ca") } }),
        });
        const options = await connection.authorize();
        assert.deepEqual(options.headers, headers);
        assert.deepEqual(options.ca, Buffer.from("ca"));
        // From files and the kubeconfig as bytes, from plugins as text.
        const identity = [options.cert, options.key].map((pem) => (Buffer.isBuffer(pem) ? pem.toString() : pem));
        assert.deepEqual(identity, name.startsWith("a certificate") ? ["cert", "key"] : [undefined, undefined]);
      });
    }

    it("a credential plugin that fails is Unauthorized, with the plugin's message", async () => {
      const connection = await loadConnection({
        kubeconfig: kubeconfig({ user: exec(`console.error("log in first"); process.exit(1)`) }),
      });
      await assert.rejects(connection.authorize(), (error: Error & { code?: string }) => {
        assert.equal(error.code, "Unauthorized");
        assert.match(error.message, /log in first/);
        return true;
      });
    });
  });

  describe(`${as}: the configuration that is used`, () => {
    it("is the explicit one before KUBECONFIG, with its own address for the server", async () => {
      const explicit = { apiUrl: "https://10.0.0.1:443/base", configFile: kubeconfig({ user: { token: "mine" } }) };
      const { server, authorize } = await loadConnection({
        explicit,
        kubeconfig: kubeconfig({ user: { token: "other" } }),
      });
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

    const MINE = { name: "two", cluster: { server: "https://mine.test" }, user: { token: "mine" } };
    const THEIRS = { name: "two", cluster: { server: "https://theirs.test" }, user: { token: "theirs" } };
    const PATHS: readonly [name: string, paths: string][] = [
      ["the first of those that have the same names", `${kubeconfig(MINE)}:${kubeconfig(THEIRS)}`],
      [
        "the first that names a context",
        `${kubeconfig({ name: "one" }, "")}:${kubeconfig(MINE)}:${kubeconfig({ name: "three" })}`,
      ],
      ["those that are there", `${join(directory, "missing")}:${kubeconfig(MINE)}:${join(directory, "gone")}`],
    ];
    for (const [name, paths] of PATHS)
      it(`is, of several files, ${name}, as with kubectl`, async () => {
        const { server, authorize } = await loadConnection({ kubeconfig: paths });
        assert.equal(server.hostname, "mine.test");
        assert.deepEqual((await authorize()).headers, { Authorization: "Bearer mine" });
      });

    it("is the pod's ServiceAccount when nothing is named", async () => {
      const root = mkdtempSync(join(directory, "pod-"));
      const secrets = join(root, "var/run/secrets/kubernetes.io/serviceaccount");
      mkdirSync(secrets, { recursive: true });
      for (const [file, text] of Object.entries({ token: "own", "ca.crt": "ca", namespace: "ns" }))
        writeFileSync(join(secrets, file), text);
      Object.assign(process.env, { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" });
      const { server, authorize } = await loadConnection({ root });
      const { headers, ca } = await authorize();
      assert.equal(server.href, "https://[fd00::1]:6443/");
      assert.deepEqual([headers, String(ca)], [{ authorization: "Bearer own" }, "ca"]);
    });

    const UNUSABLE: readonly [name: string, file: string][] = [
      ["a file that is not there", join(directory, "missing")],
      ["several files that are not there", `${join(directory, "missing")}:${join(directory, "gone")}`],
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

  describe(`${as}: a request`, () => {
    async function sendRequest(cluster: object, user: object = {}): Promise<void> {
      const connection = await loadConnection({ kubeconfig: kubeconfig({ cluster, user }) });
      await connectCluster(connection, { timeoutMs: 5000 }).get(pods, { namespace: "ns", name: "p" });
      connection.close();
    }

    it("goes below the server's own path, as behind Rancher", async () => {
      const { server, seen } = await stage([json({})]);
      await sendRequest({ server: `${server.origin}/k8s/clusters/c-1/`, "certificate-authority-data": base64(caPem) });
      assert.equal(seen[0]?.path, "/k8s/clusters/c-1/api/v1/namespaces/ns/pods/p");
    });

    it("shows the client's certificate", async () => {
      const { caPem, certPem, keyPem } = await certify("localhost");
      const shown: string[] = [];
      const server = https.createServer(
        { cert: certPem, key: keyPem, requestCert: true, rejectUnauthorized: false },
        (request, response) => {
          shown.push((request.socket as TLSSocket).getPeerX509Certificate()?.toString() ?? "none");
          response.end("{}");
        },
      );
      const cluster = {
        server: `https://127.0.0.1:${await listen(server)}`,
        "certificate-authority-data": base64(caPem),
      };
      await sendRequest(cluster, { "client-certificate-data": base64(certPem), "client-key-data": base64(keyPem) });
      server.close();
      assert.deepEqual(
        shown.map((pem) => pem.trim()),
        [certPem.replaceAll("\r", "").trim()],
      );
    });

    it("goes through the cluster's proxy", async () => {
      const { server, seen } = await stage([json({})]);
      const proxied: (string | undefined)[] = [];
      const proxy = createServer().on("connect", (request, socket) => {
        proxied.push(request.url);
        const onward = connect(Number(server.port), server.hostname, () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
        onward.pipe(socket).pipe(onward);
      });
      const proxyUrl = `http://127.0.0.1:${await listen(proxy)}`;
      await sendRequest({ server: server.origin, "certificate-authority-data": base64(caPem), "proxy-url": proxyUrl });
      proxy.close();
      assert.deepEqual([proxied, seen.length], [[server.host], 1]);
    });
  });
}
