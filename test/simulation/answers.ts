/** What a client gets in place of the answer that it asked for. */
import { type Client, reset } from "../emulator/in-process.ts";

export function answerWith(
  client: Client,
  status: number,
  body?: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (client.closed) return;
  const text =
    body ?? JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code: status, message: "" });
  client.head(status, { "content-type": "application/json", ...headers });
  client.chunk(text);
  client.end();
}

const EXPIRED = JSON.stringify({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  message: "The resourceVersion for the provided watch is too old.",
  reason: "Expired",
  code: 410,
});

/** What the API server has is newer than what is asked for. A watch may be told of it as its first event. */
export function answerExpired(client: Client, asEvent: boolean): void {
  answerWith(client, asEvent ? 200 : 410, asEvent ? `{"type":"ERROR","object":${EXPIRED}}\n` : EXPIRED);
}

/** The connection breaks in the middle of a body. */
export function breakOff(client: Client, data: string | Buffer): void {
  if (client.closed) return;
  client.chunk(data.slice(0, Math.floor(data.length / 2)));
  client.fail(reset());
}
