import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { after, describe, it } from "node:test";
import { systemClock } from "../../infra/clock.ts";
import { hasCode, RolloutError } from "../../infra/errors.ts";
import { createPodHttp, describePodFailure, type PodHttpOptions } from "../../infra/pod-http.ts";
import { listen, toLoopback } from "../loopback.ts";

async function pods(answer: RequestListener, options: Partial<PodHttpOptions> = {}) {
  const measured: unknown[] = [];
  const refused: unknown[] = [];
  const server = createServer(answer);
  const port = await listen(server);
  after(() => server.close().closeAllConnections());
  const http = createPodHttp({
    timeoutMs: 60_000,
    clock: systemClock,
    lookup: toLoopback,
    observer: {
      podAnswered: ({ path, method, status }) => measured.push({ path, method, status }),
      clusterRefused: (call) => refused.push(call),
    },
    ...options,
  });
  const base = `http://zone-a-0.svc.ns.svc.cluster.local.:${port}`;
  return { http, base, measured, refused };
}

const NS = { namespace: "ns" };

describe("HTTP to pods", () => {
  it("sends the method to the pod's own name, with the namespace as X-Cluster, and without a body", async () => {
    let seen: unknown;
    const { http, base, measured } = await pods(({ method, url, headers }, response) => {
      seen = {
        method,
        url,
        cluster: headers["x-cluster"],
        host: headers.host?.split(":")[0],
        length: headers["content-length"],
      };
      response.end("done");
    });
    assert.deepEqual(await http.send("POST", `${base}/prepare?x=1`, NS), { status: 200, body: "done" });
    assert.deepEqual(seen, {
      method: "POST",
      url: "/prepare?x=1",
      cluster: "ns",
      host: "zone-a-0.svc.ns.svc.cluster.local.",
      length: "0",
    });
    assert.deepEqual(measured, [{ path: "/prepare", method: "POST", status: "200" }]);
  });

  it("resolves with an answer other than success: what it means is the caller's matter", async () => {
    const { http, base } = await pods((_request, response) => response.writeHead(409).end("locked"));
    assert.deepEqual(await http.send("DELETE", base, NS), { status: 409, body: "locked" });
  });

  for (const [status, method] of [
    [307, "POST"],
    [308, "POST"],
    [302, "GET"],
    [303, "GET"],
  ] as const) {
    it(`follows a redirect with ${status} by ${method}`, async () => {
      const { http, base } = await pods((request, response) => {
        if (request.url === "/there") response.end(request.method);
        else response.writeHead(status, { location: "/there" }).end();
      });
      assert.equal((await http.send("POST", base, NS)).body, method);
    });
  }

  for (const [name, location] of [
    ["another host", (port: number) => `http://evil.example:${port}/there`],
    ["another port", (port: number) => `http://zone-a-0.svc.ns.svc.cluster.local.:${port + 1}/there`],
    ["another scheme", (port: number) => `https://zone-a-0.svc.ns.svc.cluster.local.:${port}/there`],
  ] as const)
    it(`does not follow a redirect to ${name}, and does not repeat the answer`, async () => {
      const seen: string[] = [];
      const { http, base } = await pods((request, response) => {
        seen.push(`${request.headers.host?.split(":")[0]} ${request.url}`);
        const port = Number(request.headers.host?.split(":")[1]);
        response.writeHead(307, { location: `${location(port)}?secret` }).end();
      });
      await assert.rejects(
        http.send("POST", base, NS),
        (error) =>
          hasCode(error, "Invalid") &&
          error.message.endsWith("a redirect to another host, port or scheme is not followed") &&
          !/secret|evil/.test(error.message),
      );
      assert.deepEqual(seen, ["zone-a-0.svc.ns.svc.cluster.local. /"]);
    });

  it("keeps user, password and query out of what it says", async () => {
    const absent = createPodHttp({ timeoutMs: 60_000, clock: systemClock, lookup: toLoopback });
    await assert.rejects(absent.send("POST", "http://me:secret@zone-a-0:1/p?token=secret#secret", NS), (error) => {
      assert.ok(hasCode(error, "Unreachable"));
      return error.message.startsWith("POST http://zone-a-0:1/p:") && !error.message.includes("secret");
    });
  });

  it("gives up on a redirect cycle", async () => {
    const { http, base } = await pods((_request, response) => response.writeHead(307, { location: "/" }).end());
    await assert.rejects(http.send("POST", base, NS), /more than 10 redirects/);
  });

  it("refuses and counts a 511: the pod belongs to another cluster", async () => {
    const { http, base, refused } = await pods((_request, response) => response.writeHead(511).end("secret"));
    await assert.rejects(
      http.send("POST", base, NS),
      (error) => hasCode(error, "Invalid") && error.message.endsWith("it belongs to another cluster than ns"),
    );
    assert.deepEqual(refused, [{ method: "POST", namespace: "ns" }]);
  });

  it("names the request in every error, and distinguishes a silent pod from an absent one", async () => {
    const silent = await pods(() => undefined, { timeoutMs: 50 });
    await assert.rejects(
      silent.http.send("POST", silent.base, NS),
      (error) => hasCode(error, "Timeout") && error.message.startsWith("POST http://zone-a-0"),
    );
    const absent = createPodHttp({ timeoutMs: 60_000, clock: systemClock, lookup: toLoopback });
    await assert.rejects(absent.send("POST", "http://zone-a-0:1/", NS), (error) => hasCode(error, "Unreachable"));
  });

  it("breaks off an answer that does not end", async () => {
    const { http, base } = await pods((_request, response) => response.end("x".repeat(100_000)));
    await assert.rejects(http.send("POST", base, NS), /longer than 65536 characters/);
  });

  it("keeps at most so many in flight, over all callers, and lets go of those that gave up waiting", async () => {
    let inFlight = 0;
    let most = 0;
    const held: (() => void)[] = [];
    const { http, base } = await pods(
      (_request, response) => {
        most = Math.max(most, ++inFlight);
        held.push(() => {
          inFlight--;
          response.end();
        });
        if (held.length === 2) setImmediate(() => held.splice(0).forEach((end) => end()));
      },
      { atOnce: 2 },
    );
    const giveUp = new AbortController();
    const all = Array.from({ length: 8 }, () => http.send("POST", base, NS));
    const tired = http.send("POST", base, { ...NS, signal: giveUp.signal });
    giveUp.abort();
    await assert.rejects(tired, (error) => hasCode(error, "Cancelled"));
    await Promise.all(all);
    assert.equal(most, 2);
  });
});

describe("a pod that could not be called is named", () => {
  const URL_OF = "http://me:secret@db-2.db.shop.svc.cluster.local.:8080/prepare?token=secret";
  const WHERE = "db-2 at http://db-2.db.shop.svc.cluster.local.:8080/prepare";
  const CASES: readonly [RolloutError, string][] = [
    [new RolloutError("Invalid", "it answered 503", { status: 503 }), `${WHERE}: it answered 503`],
    [
      new RolloutError("Timeout", "POST http://db-2.db.shop.svc.cluster.local.:8080/prepare: no answer within 5000 ms"),
      `${WHERE}: no answer within 5000 ms`,
    ],
    [new RolloutError("Cancelled", "cancelled by the caller"), `${WHERE}: no answer in time`],
  ];
  for (const [error, expected] of CASES)
    it(`without credentials: ${error.message}`, () => assert.equal(describePodFailure(URL_OF, error), expected));
});
