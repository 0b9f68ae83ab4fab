/** Serves the status page over plain HTTP. It has no state to lose: a stop ends connections at once. */
import { createServer } from "node:http";
import { portOf, listen } from "../http/listen.ts";
import type { StatusPage } from "./compose.ts";

/** Milliseconds for the headers of a request, which has no body. */
const HEADERS_MS = 10_000;

/** Serves until `stop` fires; rejects if the port is in use. `onListening` gets the page's address. */
export async function serveStatusPage(
  { configuration: { address, port }, answer, log }: StatusPage,
  stop: AbortSignal,
  onListening: (url: string) => void = () => {},
): Promise<void> {
  const timeouts = { headersTimeout: HEADERS_MS, requestTimeout: HEADERS_MS };
  const server = createServer(timeouts, (request, response) => void answer(request, response));
  await listen(server, port, address);
  const url = `http://${address ?? "localhost"}:${portOf(server)}`;
  log.info("listening", { what: "status page", port: portOf(server) });
  onListening(url);
  if (!stop.aborted) await new Promise((resolve) => stop.addEventListener("abort", resolve, { once: true }));
  server.close();
  server.closeAllConnections();
}
