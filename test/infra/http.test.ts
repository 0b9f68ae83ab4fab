import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { systemClock } from "../../infra/clock.ts";
import { exchange, readRetryAfter, readText, requestOnce, withinDeadline } from "../../infra/http.ts";
import { RolloutError } from "../../infra/errors.ts";
import { listen } from "../loopback.ts";

async function serve(t: TestContext, answer: RequestListener): Promise<URL> {
  const server = createServer(answer);
  const port = await listen(server);
  t.after(() => (server.closeAllConnections(), server.close()));
  return new URL(`http://127.0.0.1:${port}/path?a=b`);
}

const never = new AbortController().signal;

it("a request sends its method, headers and body, on a connection that ends with the answer", async (t) => {
  const url = await serve(t, (request, response) => {
    void request.toArray().then((chunks) => {
      const { method, url: path, headers } = request;
      response.end(
        JSON.stringify([method, path, headers["x-mark"], headers.connection, Buffer.concat(chunks).toString()]),
      );
    });
  });
  const answer = await requestOnce(url, { method: "PUT", headers: { "x-mark": "1" }, body: "sent", signal: never });
  assert.deepEqual(JSON.parse(await readText(answer, never)), ["PUT", "/path?a=b", "1", "close", "sent"]);
});

it("a request goes over a socket of this machine", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "http-"));
  const socketPath = join(folder, "socket");
  const server = createServer(({ url }, response) => void response.end(url));
  await new Promise<void>((resolve) => void server.listen(socketPath, resolve));
  t.after(async () => (server.close(), await rm(folder, { recursive: true })));
  const answer = await requestOnce(new URL("http://localhost/os"), { socketPath, signal: never });
  assert.equal(await readText(answer, never), "/os");
});

it("a request that its signal ends rejects with the signal's reason, before the answer and while it is read", async (t) => {
  const url = await serve(t, ({ url: path }, response) => {
    if (path === "/half") response.write("half");
  });
  const silent = new AbortController();
  const asked = requestOnce(url, { signal: silent.signal });
  silent.abort(new Error("over"));
  await assert.rejects(asked, { message: "over" });
  const slow = new AbortController();
  const answer = await requestOnce(new URL("/half", url), { signal: slow.signal });
  const read = readText(answer, slow.signal);
  slow.abort(new Error("too slow"));
  await assert.rejects(read, { message: "too slow" });
});

it("an answer that is longer than allowed is not read to its end", async (t) => {
  const url = await serve(t, (_, response) => void response.end("x".repeat(100)));
  const answer = await requestOnce(url, { signal: never });
  await assert.rejects(readText(answer, never, 99), /longer than 99 characters/);
});

it("a request that nobody answers rejects with the error of the connection", async (t) => {
  const url = await serve(t, ({ socket }) => void socket.destroy());
  await assert.rejects(requestOnce(url, { signal: never }), { code: "ECONNRESET" });
});

const within = (timeoutMs: number, url: URL, caller?: AbortSignal) =>
  withinDeadline("GET it", { timeoutMs, signal: caller }, (signal) => exchange(url, { signal, maxLength: 9 }));

it("an exchange within a deadline resolves with any answer, and names itself in every error", async (t) => {
  const url = await serve(t, ({ url: path }, response) => {
    if (path !== "/silent") response.writeHead(418, { "x-mark": "1" }).end(path === "/long" ? "x".repeat(10) : "short");
  });
  const { status, headers, text } = await within(5000, url);
  assert.deepEqual([status, headers["x-mark"], text], [418, "1", "short"]);
  const over = AbortSignal.abort();
  for (const [code, asked] of [
    ["Timeout", () => within(50, new URL("/silent", url))],
    ["Cancelled", () => within(5000, new URL("/silent", url), over)],
    ["ServerError", () => within(5000, new URL("/long", url))],
    ["Unreachable", () => within(5000, new URL("http://127.0.0.1:1/"))],
  ] as const)
    await assert.rejects(asked, (error) => {
      assert.ok(error instanceof RolloutError && error.code === code, code);
      return error.message.startsWith("GET it: ") && error.message.length > 10;
    });
});

it("a redirect is followed only as the caller says, ten times at most", async (t) => {
  const url = await serve(t, (request, response) => {
    const location = request.url === "/once" ? "/end" : request.url === "/end" ? undefined : "/for-ever";
    response
      .writeHead(location === undefined ? 200 : 307, location === undefined ? {} : { location })
      .end(request.method);
  });
  const once = new URL("/once", url);
  assert.equal((await exchange(once, { method: "PUT", body: "b", signal: never })).status, 307);
  const followed = await exchange(once, { method: "PUT", signal: never, onRedirect: () => ({ method: "POST" }) });
  assert.deepEqual([followed.status, followed.text], [200, "POST"]);
  await assert.rejects(exchange(url, { signal: never, onRedirect: () => ({}) }), /more than 10 redirects/);
});

it("a call is repeated after the seconds of Retry-After, at least one, and up to a quarter later; a date counts as none", () => {
  const waits = (header: string | undefined, random: number): number | undefined =>
    readRetryAfter(header === undefined ? {} : { "retry-after": header }, () => random);
  assert.deepEqual(
    ["0", "1", "30", undefined, "", "-1", "0.5", "Sat, 28 Nov 2026 15:00:00 GMT"].map((header) => waits(header, 0)),
    [1000, 1000, 30_000, undefined, undefined, undefined, undefined, undefined],
  );
  assert.deepEqual(
    ["0", "4"].map((header) => waits(header, 1)),
    [1250, 5000],
  );
});

it("a call is repeated after an hour at the latest, and a timer never gets more than Node.js can wait", (t) => {
  for (const header of ["3600", "2592000", "999999999"])
    assert.equal(
      readRetryAfter({ "retry-after": header }, () => 0),
      3_600_000,
    );
  const timer = t.mock.method(globalThis, "setTimeout", () => 0);
  void systemClock.sleep(30 * 86_400_000);
  assert.equal(timer.mock.calls[0]?.arguments[1], 2 ** 31 - 1);
});
