/** A plain HTTPS server that answers like an API server with a list of pods, in pages, gzipped on request. */
import { createServer } from "node:https";
import { gzipSync } from "node:zlib";
import { listen } from "../loopback.ts";
import { podJson, podMetadataJson } from "./pod-list.ts";

export interface PodServer {
  readonly url: string;
  /** Bytes of bodies sent so far. */
  sentBytes(): number;
  close(): void;
}

/** Starts the server on a free port of the loopback; pages are rendered once and kept. */
export async function startPodServer(count: number, tls: { readonly cert: string; readonly key: string }): Promise<PodServer> {
  const pods = Array.from({ length: count }, (_, ordinal) => podJson(ordinal));
  const metadata = Array.from({ length: count }, (_, ordinal) => podMetadataJson(ordinal));
  const rendered = new Map<string, Buffer>();
  let sent = 0;

  const render = (partial: boolean, from: number, limit: number, gzip: boolean): Buffer => {
    const id = `${partial} ${from} ${limit} ${gzip}`;
    const kept = rendered.get(id);
    if (kept) return kept;
    const next = from + limit < count ? String(from + limit) : "";
    const items = (partial ? metadata : pods).slice(from, from + limit).join(",");
    const kind = partial ? "PartialObjectMetadataList" : "PodList";
    const text = `{"kind":"${kind}","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"${next}"},"items":[${items}]}`;
    // Level 1, as the API server does.
    const body = gzip ? gzipSync(text, { level: 1 }) : Buffer.from(text);
    rendered.set(id, body);
    return body;
  };

  const server = createServer(tls, (request, response) => {
    const query = new URL(request.url ?? "/", "https://bench").searchParams;
    const partial = request.headers.accept?.includes("PartialObjectMetadataList") ?? false;
    const gzip = request.headers["accept-encoding"]?.includes("gzip") ?? false;
    const body = render(partial, Number(query.get("continue") ?? 0), Number(query.get("limit") ?? count), gzip);
    sent += body.length;
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": body.length,
      ...(gzip && { "content-encoding": "gzip" }),
    });
    response.end(body);
  });
  const port = await listen(server);
  return { url: `https://127.0.0.1:${port}`, sentBytes: () => sent, close: () => server.close() };
}
