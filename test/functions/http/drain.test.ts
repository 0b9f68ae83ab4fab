import assert from "node:assert/strict";
import { createServer } from "node:http";
import { connect } from "node:net";
import { it } from "node:test";
import { systemClock } from "../../../infra/clock.ts";
import { countRequests, drain } from "../../../functions/http/drain.ts";
import { createBackgroundTasks } from "../../../functions/http/background-tasks.ts";
import { listen } from "../../loopback.ts";

const GRACE_MS = 600_000;

it("a connection without any request does not delay the end; a request in flight does", { timeout: 20_000 }, async () => {
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
  const draining = drain([counted], createBackgroundTasks(), { graceMs: GRACE_MS, clock: systemClock }).then(() => (over = true));
  const cut = new Promise<void>((resolve) => unused.once("close", () => resolve()));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(over, false);
  answer();
  assert.equal(await text, "done");
  await Promise.all([cut, draining]);
});

const server = createServer();
