/**
 * One HTTP request over a connection of its own, and the reading of answers. The Kubernetes API, whose connections are
 * kept, has kubernetes/transport.ts.
 */
import http from "node:http";
import https, { type RequestOptions } from "node:https";
import { urlToHttpOptions } from "node:url";

/** Opens an HTTP request, as `https.request` does: to `options.protocol`, `host` or `hostname`, `port` and `path`. */
export type OpenRequest = (options: RequestOptions) => http.ClientRequest;

export interface OnceOptions extends Omit<RequestOptions, "agent"> {
  /** Opens the request in place of the network. */
  readonly open?: OpenRequest | undefined;
  /** Ends the request; it ends the reading of the answer where that is given it as well. */
  readonly signal: AbortSignal;
  readonly body?: string | undefined;
}

/**
 * Resolves with the head of the answer; the caller reads the body. Rejects with the signal's reason if it fires, or
 * with the error of the connection.
 */
export function requestOnce(url: URL, { body, signal, open, ...options }: OnceOptions): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const send = open ?? (url.protocol === "https:" ? https : http).request;
    const request = send({ ...urlToHttpOptions(url), ...options, signal, agent: false });
    request.on("error", (error) => reject(signal.aborted ? signal.reason : error));
    request.on("response", resolve);
    request.end(body);
  });
}

/** The whole body; rejects with the signal's reason if the signal aborts the read. */
export async function readBytes(answer: http.IncomingMessage, signal: AbortSignal): Promise<Buffer> {
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
}

/**
 * The whole body as text, `most` characters at most; rejects with the signal's reason if the signal aborts the read.
 */
export async function readText(answer: http.IncomingMessage, signal: AbortSignal, most = Infinity): Promise<string> {
  // Decoded chunk by chunk, without joining buffers at the end: a page of a list has a few MB.
  answer.setEncoding("utf8");
  let text = "";
  try {
    for await (const chunk of answer) {
      text += chunk;
      if (text.length > most) throw new Error(`the answer is longer than ${most} characters`);
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  }
  return text;
}
