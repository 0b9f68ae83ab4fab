/** A collector of OpenTelemetry that keeps the spans that it is sent: OTLP over HTTP, in protobuf. */
import { createServer } from "node:http";
import type { TestContext } from "node:test";
import { buffer } from "node:stream/consumers";
import { PbfReader } from "pbf";
import { listen } from "../../loopback.ts";

type Values = Readonly<Record<string, string | number | boolean>>;

export interface ReceivedSpan {
  readonly name: string;
  readonly trace: string;
  readonly id: string;
  /** "" for the first of a trace. */
  readonly parent: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly failed: boolean;
  readonly attributes: Values;
  readonly resource: Values;
}

interface Collector {
  readonly url: string;
  readonly spans: ReceivedSpan[];
}

/** Listens on loopback until the end of the test. */
export async function startCollector(t: Pick<TestContext, "after">): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      if (request.url === "/v1/traces") spans.push(...readRequest(body));
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    });
  });
  const port = await listen(server);
  t.after(() => server.close().closeAllConnections());
  return { url: `http://127.0.0.1:${port}`, spans };
}

type Fields = Readonly<Record<number, (reader: PbfReader) => void>>;

/** Fields by their numbers in opentelemetry/proto/trace/v1/trace.proto; others are skipped. */
function readMessage(reader: PbfReader, fields: Fields, end = reader.length): void {
  reader.readFields((tag, _result, at) => fields[tag]?.(at), undefined, end);
}

const within = (fields: Fields) => (reader: PbfReader) => readMessage(reader, fields, reader.readVarint() + reader.pos);

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

function readRequest(body: Buffer): ReceivedSpan[] {
  const spans: ReceivedSpan[] = [];
  readMessage(new PbfReader(body), {
    1: (reader) => {
      const resource: Record<string, string | number | boolean> = {};
      const found: Omit<ReceivedSpan, "resource">[] = [];
      within({
        1: within({ 1: (at) => readAttribute(at, resource) }),
        2: within({ 2: (at) => found.push(readSpan(at)) }),
      })(reader);
      spans.push(...found.map((span) => ({ ...span, resource })));
    },
  });
  return spans;
}

function readSpan(reader: PbfReader): Omit<ReceivedSpan, "resource"> {
  const attributes: Record<string, string | number | boolean> = {};
  const span = { name: "", trace: "", id: "", parent: "", kind: 0, failed: false };
  within({
    1: (at) => (span.trace = hex(at.readBytes())),
    2: (at) => (span.id = hex(at.readBytes())),
    4: (at) => (span.parent = hex(at.readBytes())),
    5: (at) => (span.name = at.readString()),
    6: (at) => (span.kind = at.readVarint()),
    9: (at) => readAttribute(at, attributes),
    15: within({ 3: (at) => (span.failed = at.readVarint() === 2) }),
  })(reader);
  return { ...span, attributes };
}

function readAttribute(reader: PbfReader, into: Record<string, string | number | boolean>): void {
  let key = "";
  within({
    1: (at) => (key = at.readString()),
    2: within({
      1: (at) => (into[key] = at.readString()),
      2: (at) => (into[key] = at.readBoolean()),
      3: (at) => (into[key] = at.readVarint()),
    }),
  })(reader);
}
