import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { readText, requestOnce } from "../../infra/http.ts";
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
