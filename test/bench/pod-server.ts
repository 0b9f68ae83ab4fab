/**
 * A plain HTTPS server that answers like an API server with a list of pods, in pages, in JSON or protobuf, gzipped on
 * request.
 */
import { createServer } from "node:https";
import { gzipSync } from "node:zlib";
import { listen } from "../loopback.ts";
import { PROTOBUF } from "../../infra/kubernetes/protobuf.ts";
import { fieldsOf } from "../emulator/objects.ts";
import { seal, writeItem, writeMessage } from "../emulator/protobuf/write.ts";
import { podJson, podMetadataJson } from "./pod-list.ts";

export interface PodServer {
  readonly url: string;
  /** Bytes of bodies sent so far. */
  sentBytes(): number;
  close(): void;
}

type Form = "object" | "metadata" | "protobuf";

function formOf(accept = ""): Form {
  if (accept.startsWith(PROTOBUF)) return "protobuf";
  return accept.includes("PartialObjectMetadataList") ? "metadata" : "object";
}

/** Starts the server on a free port of the loopback; pages are rendered once and kept. */
export async function startPodServer(
  count: number,
  tls: { readonly cert: string; readonly key: string },
): Promise<PodServer> {
  const pods = Array.from({ length: count }, (_, ordinal) => podJson(ordinal));
  const metadata = Array.from({ length: count }, (_, ordinal) => podMetadataJson(ordinal));
  const messages = pods.map((pod) => writeItem("PodList", "items", fieldsOf(JSON.parse(pod))));
  const rendered = new Map<string, Buffer>();
  let sent = 0;

  const render = (form: Form, from: number, limit: number, gzip: boolean): Buffer => {
    const id = `${form} ${from} ${limit} ${gzip}`;
    const kept = rendered.get(id);
    if (kept) return kept;
    const next = from + limit < count ? String(from + limit) : "";
    const list = form === "protobuf" ? listMessage(from, limit, next) : Buffer.from(listText(form, from, limit, next));
    // Level 1, as the API server does.
    const body = gzip ? gzipSync(list, { level: 1 }) : list;
    rendered.set(id, body);
    return body;
  };
  const listMessage = (from: number, limit: number, next: string): Buffer => {
    const metadata = writeMessage("PodList", { metadata: { resourceVersion: "7", continue: next } });
    return seal("PodList", metadata, ...messages.slice(from, from + limit));
  };
  const listText = (form: Form, from: number, limit: number, next: string): string => {
    const partial = form === "metadata";
    const items = (partial ? metadata : pods).slice(from, from + limit).join(",");
    const kind = partial ? "PartialObjectMetadataList" : "PodList";
    return `{"kind":"${kind}","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"${next}"},"items":[${items}]}`;
  };

  const server = createServer(tls, (request, response) => {
    const query = new URL(request.url ?? "/", "https://bench").searchParams;
    const form = formOf(request.headers.accept);
    const gzip = request.headers["accept-encoding"]?.includes("gzip") ?? false;
    const body = render(form, Number(query.get("continue") ?? 0), Number(query.get("limit") ?? count), gzip);
    sent += body.length;
    response.writeHead(200, {
      "content-type": form === "protobuf" ? PROTOBUF : "application/json",
      "content-length": body.length,
      ...(gzip && { "content-encoding": "gzip" }),
    });
    response.end(body);
  });
  const port = await listen(server);
  return { url: `https://127.0.0.1:${port}`, sentBytes: () => sent, close: () => server.close() };
}
