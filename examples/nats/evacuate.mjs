/**
 * Stands beside each server and answers Zonewise before the server is scaled away: POST /prepare-downscale has JetStream move
 * the server's streams to other servers of its zone, and answers 200 once none is left. Until then it answers 503, and Zonewise
 * asks again. It needs no package: what it says to NATS is one request.
 */
import { createServer } from "node:http";
import { connect } from "node:net";

const { POD_NAME, SYS_PASSWORD } = process.env;
/** Below the time that Zonewise gives a pod. */
const WAIT_MS = 4000;

/** Asks JetStream to move everything away from this server. Resolves with its answer. */
function requestEvacuation() {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify({ peer: POD_NAME });
    const socket = connect(4222, "127.0.0.1");
    let text = "";
    socket.setTimeout(WAIT_MS, () => socket.destroy(new Error("no meta leader answered")));
    socket.on("error", reject);
    socket.on("data", (data) => {
      text += data;
      if (text.includes("-ERR")) socket.destroy(new Error(text));
      const [, answer] = /\r\nMSG .*\r\n(\{.*\})\r\n/.exec(text) ?? [];
      if (answer === undefined) return;
      socket.end();
      resolve(JSON.parse(answer));
    });
    const login = JSON.stringify({ user: "sys", pass: SYS_PASSWORD, verbose: false });
    const inbox = `_INBOX.evacuate.${POD_NAME}`;
    socket.write(`CONNECT ${login}\r\nSUB ${inbox} 1\r\nPUB $JS.API.SERVER.EVACUATE ${inbox} ${body.length}\r\n${body}\r\n`);
  });
}

/** How many streams have a copy on this server. */
async function countStreams() {
  const answer = await fetch("http://127.0.0.1:8222/jsz");
  return (await answer.json()).streams;
}

async function evacuate() {
  const deadline = Date.now() + WAIT_MS;
  if ((await countStreams()) > 0) {
    const { error } = await requestEvacuation();
    if (error) throw new Error(error.description);
  }
  for (;;) {
    const count = await countStreams();
    if (count === 0) return;
    if (Date.now() > deadline) throw new Error(`${count} streams are still here`);
    await new Promise((wake) => setTimeout(wake, 200));
  }
}

const server = createServer(async (request, response) => {
  // DELETE, if the server stays after all: what has moved away need not come back.
  if (request.method !== "POST") return response.end();
  try {
    await evacuate();
    response.end();
  } catch (error) {
    response.writeHead(503).end(String(error));
  }
});
server.listen(8080);
process.on("SIGTERM", () => process.exit());
