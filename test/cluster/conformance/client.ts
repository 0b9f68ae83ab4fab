/** A plain HTTPS client for one API server, without a Kubernetes library. */
import https from "node:https";
import { createInterface } from "node:readline";

/** A kubeconfig as JSON with token authentication; the suite needs no other fields. */
export interface Kubeconfig {
  readonly clusters: readonly {
    readonly cluster: { readonly server: string; readonly "certificate-authority-data": string };
  }[];
  readonly users: readonly { readonly user: { readonly token: string } }[];
}

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** Content-Type, application/json by default. */
  readonly type?: string | undefined;
  readonly accept?: string | undefined;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: Readonly<Record<string, unknown>>;
}

export interface Client {
  call(request: Request): Promise<Answer>;
  /**
   * Calls `onEvent` for each event; resolves once the server has responded. An error response becomes an
   * event ERROR.
   */
  watch(
    request: Pick<Request, "path" | "accept">,
    onEvent: (event: WatchEvent) => void,
  ): Promise<{ stop(): void; ended: Promise<void> }>;
  close(): void;
}

/** A call that takes longer is a watch by mistake. */
const CALL_MS = 60_000;

export function connect(kubeconfig: Kubeconfig): Client {
  const { server, "certificate-authority-data": ca } = kubeconfig.clusters[0]?.cluster ?? {
    server: "",
    "certificate-authority-data": "",
  };
  const agent = new https.Agent({ keepAlive: true, ca: Buffer.from(ca, "base64") });
  const token = kubeconfig.users[0]?.user.token ?? "";

  const send = (
    { method, path, body, type = "application/json", accept = "application/json" }: Request,
    signal?: AbortSignal,
  ) =>
    new Promise<import("node:http").IncomingMessage>((resolve, reject) => {
      const data = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
      const headers = {
        authorization: `Bearer ${token}`,
        accept,
        ...(data !== undefined && { "content-type": type, "content-length": Buffer.byteLength(data) }),
      };
      https
        .request(new URL(path, server), { agent, method, headers, ...(signal && { signal }) }, resolve)
        .on("error", reject)
        .end(data);
    });

  return {
    call: async (request) => {
      const response = await send(request, AbortSignal.timeout(CALL_MS));
      let text = "";
      for await (const chunk of response.setEncoding("utf8")) text += chunk;
      return { status: response.statusCode ?? 0, body: parse(text), headers: response.headers };
    },
    watch: async ({ path, accept }, onEvent) => {
      const response = await send({ method: "GET", path, accept });
      const ended = new Promise<void>((resolve) => response.once("close", resolve));
      response.on("error", () => response.destroy());
      createInterface({ input: response }).on("line", (line) => {
        const message = parse(line) as WatchEvent | { kind: "Status" };
        onEvent("type" in message ? message : { type: "ERROR", object: message });
      });
      return { stop: () => void response.destroy(), ended };
    },
    close: () => agent.destroy(),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
