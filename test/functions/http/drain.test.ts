import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect, type Socket } from "node:net";
import { it } from "node:test";
import { type Clock, systemClock } from "../../../infra/clock.ts";
import { countRequests, finishRequests } from "../../../functions/http/server.ts";
import { createBackgroundTasks } from "../../../functions/http/rim.ts";
import { listen } from "../../loopback.ts";

const GRACE_MS = 600_000;
const fastClock: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 25, signal) };

it(
  "a connection without any request does not delay the end; a request in flight does",
  { timeout: 300_000 },
  async () => {
    let answer = (): void => {};
    const arrived = new Promise<void>((resolve) => {
      server.on("request", (_request, response) => {
        answer = () => response.end("done");
        resolve();
      });
    });
    const counted = countRequests(server);
    const port = await listen(server);
    const unused = connect(port, "127.0.0.1");
    await new Promise((resolve) => unused.once("connect", resolve));
    const text = fetch(`http://127.0.0.1:${port}/`).then((response) => response.text());
    await arrived;
    let over = false;
    const draining = finishRequests(counted, createBackgroundTasks(), { graceMs: GRACE_MS, clock: fastClock }).then(
      () => (over = true),
    );
    const cut = new Promise<void>((resolve) => unused.once("close", () => resolve()));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(over, false);
    answer();
    assert.equal(await text, "done");
    await Promise.all([cut, draining]);
  },
);

/** Its `sleep` ends with `wake`. */
function createHeldClock(): Clock & { wake: () => void } {
  let held = Promise.withResolvers<void>();
  return {
    ...systemClock,
    sleep: (ms) => (ms === GRACE_MS ? new Promise<void>(() => {}) : held.promise),
    wake() {
      held.resolve();
      held = Promise.withResolvers();
    },
  };
}

/**
 * Writes a request to a kept-alive connection. Resolves with the response; rejects if the connection ends without one.
 */
function ask(socket: Socket): Promise<string> {
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  return new Promise((resolve, reject) => {
    socket.once("data", (data) => resolve(data.toString()));
    socket.once("close", () => reject(new Error("the connection was closed without an answer")));
    socket.once("error", reject);
  });
}

it("a request that a client sends on an idle connection while the server drains is answered, and is the connection's last", async (t) => {
  const server = createServer(
    (_request, response) => void response.writeHead(200, { "content-type": "text/plain" }).end("done"),
  );
  const counted = countRequests(server);
  const port = await listen(server);
  t.after(() => server.close().closeAllConnections());
  const idle = connect(port, "127.0.0.1");
  assert.match(await ask(idle), /connection: keep-alive/i);
  const clock = createHeldClock();
  const draining = finishRequests(counted, createBackgroundTasks(), { graceMs: GRACE_MS, clock });
  await new Promise((resolve) => setImmediate(resolve));
  const answer = await ask(idle);
  assert.match(answer, /connection: close/i);
  assert.match(answer, /done/);
  let over = false;
  void draining.then(() => (over = true));
  while (!over) {
    clock.wake();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(server.listening, false);
});

const server = createServer();
