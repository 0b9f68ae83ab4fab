/** Profiles over HTTP, of this very process. */
import assert from "node:assert/strict";
import { createServer, get } from "node:http";
import { networkInterfaces } from "node:os";
import { describe, it, type TestContext } from "node:test";
import inspector from "node:inspector";
import { serveProfiles } from "../../../infra/profiles/act/serve-profiles.ts";
import { start } from "../../../infra/start.ts";
import { systemClock } from "../../../infra/clock.ts";
import { listen } from "../../loopback.ts";
import { keepingLog } from "../../functions/stage.ts";

/** A server whose seconds end when the test says so. */
async function serve(t: TestContext) {
  const { log, entries } = keepingLog();
  const waits: { readonly ms: number; readonly end: () => void }[] = [];
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      waits.push({ ms, end: resolve });
      signal?.addEventListener("abort", () => resolve(), { once: true });
    });
  const server = await serveProfiles(0, { clock: { sleep }, log, service: "zonewise-test" });
  assert.ok(server);
  t.after(server.close);
  const begun = async (count: number): Promise<void> => {
    while (waits.length < count) await new Promise(setImmediate);
  };
  return { url: `http://127.0.0.1:${server.port}`, port: server.port, waits, begun, entries };
}

describe("a profile", { timeout: 60_000 }, () => {
  for (const [path, extension, field] of [
    ["profile", "cpuprofile", "nodes"],
    ["heap", "heapprofile", "head"],
  ] as const)
    it(`of ${path} is answered as a .${extension} after its seconds`, async (t) => {
      const { url, waits, begun } = await serve(t);
      const asked = fetch(`${url}/debug/pprof/${path}?seconds=7`);
      await begun(1);
      assert.equal(waits[0]?.ms, 7000);
      waits[0]?.end();
      const response = await asked;
      assert.equal(response.status, 200);
      assert.match(response.headers.get("content-disposition") ?? "", new RegExp(`zonewise-test\\.${extension}"$`));
      assert.ok(field in ((await response.json()) as object));
      assert.equal(inspector.url(), undefined, "no port of a debugger is opened");
    });

  it("is alone: another one is refused meanwhile, and taken afterwards", async (t) => {
    const { url, waits, begun } = await serve(t);
    const first = fetch(`${url}/debug/pprof/profile`);
    await begun(1);
    assert.equal((await fetch(`${url}/debug/pprof/heap`)).status, 429);
    waits[0]?.end();
    await (await first).arrayBuffer();
    const next = fetch(`${url}/debug/pprof/heap`);
    await begun(2);
    waits[1]?.end();
    assert.equal((await next).status, 200);
  });

  it("ends if its caller goes, and lets the next one in", async (t) => {
    const { url, port, waits, begun } = await serve(t);
    const request = get({ port, host: "127.0.0.1", path: "/debug/pprof/profile", headers: { host: "localhost" } });
    request.on("error", () => {});
    await begun(1);
    request.destroy();
    let status = 429;
    while (status === 429) {
      const asked = fetch(`${url}/debug/pprof/heap`);
      const refused = await Promise.race([asked.then((one) => one.status), begun(2).then(() => 0)]);
      waits[1]?.end();
      status = refused === 429 ? 429 : (await asked).status;
    }
    assert.equal(status, 200);
  });

  it("is not served on another address of this machine", async (t) => {
    const { port } = await serve(t);
    const others = Object.values(networkInterfaces())
      .flat()
      .filter((one) => one !== undefined && !one.internal && one.family === "IPv4");
    for (const one of others)
      await assert.rejects(fetch(`http://${one?.address}:${port}/debug/pprof/profile?seconds=1`));
  });
});

describe("the port of profiles", () => {
  const env = { KUBERNETES_NAMESPACE: "default" };
  const machine = (write: (line: string) => void) => ({
    ...systemClock,
    write,
    connect: async () => ({ server: new URL("http://127.0.0.1:1"), authorize: async () => ({}), close: () => {} }),
  });

  it("is closed unless a variable says it", async () => {
    const lines: string[] = [];
    await start(
      env,
      machine((line) => void lines.push(line)),
      { service: "test" },
    );
    assert.ok(!lines.join("").includes("profiles"));
  });
  it("may be in use: it is said, and the process goes on", async (t) => {
    const other = createServer();
    const port = await listen(other);
    t.after(() => other.close());
    const lines: string[] = [];
    await start(
      { ...env, PROFILE_PORT: String(port) },
      machine((line) => void lines.push(line)),
      { service: "test" },
    );
    assert.match(lines.join(""), /no profiles are served.*EADDRINUSE/s);
  });
  for (const value of ["0.0.0.0:6060", "65536", "-1", "on"])
    it(`is refused by name as ${value}`, async () => {
      const starting = start(
        { ...env, PROFILE_PORT: value },
        machine(() => {}),
        { service: "test" },
      );
      await assert.rejects(starting, { code: "BadConfiguration", message: /PROFILE_PORT is .*, allowed is a port/ });
    });
});
