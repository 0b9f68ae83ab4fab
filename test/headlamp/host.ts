/** Serves the stub of Headlamp with the plugin, and passes requests on to clusters, as Headlamp's server does. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { request } from "node:https";
import { build } from "esbuild";
import { bundlePlugin } from "../../headlamp/build.ts";
import type { Emulator } from "../emulator/index.ts";
import { listen } from "../loopback.ts";

export interface Host extends AsyncDisposable {
  readonly url: string;
  /** `GET one /api/v1/pods`, as asked for. */
  readonly asked: string[];
  /** What may not be listed or got, by the plural of the kind: answered as RBAC does. */
  readonly denied: Set<string>;
  /** Clusters whose requests get no answer. */
  readonly silent: Set<string>;
}

const PAGE = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Headlamp</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body { margin: 0; background: #fff; color: #000; font: 15px/1.5 sans-serif } body.dark { background: #1b1a19; color: #fff }
nav a { color: inherit } h1 { font-size: 1.3rem }</style></head>
<body><div id="root"></div><script type="module" src="/host.js"></script></body></html>`;

/** Starts it on a free port of this machine. */
export async function startHost(clusters: Readonly<Record<string, Emulator>>): Promise<Host> {
  const stub = await build({
    entryPoints: [`${import.meta.dirname}/stub-host.js`],
    bundle: true,
    format: "esm",
    platform: "browser",
    write: false,
  });
  const files: Readonly<Record<string, string>> = {
    "/host.js": stub.outputFiles[0]?.text ?? "",
    "/plugins/zonewise/main.js": await bundlePlugin(),
  };
  const asked: string[] = [];
  const denied = new Set<string>();
  const silent = new Set<string>();
  const server = createServer((incoming, response) => {
    const { pathname } = new URL(incoming.url ?? "", "http://host");
    const file = files[pathname];
    if (file !== undefined) response.setHeader("content-type", "text/javascript").end(file);
    else if (pathname.startsWith("/clusters/")) passOn(incoming, response);
    else response.setHeader("content-type", "text/html").end(PAGE);
  });

  function passOn(incoming: IncomingMessage, response: ServerResponse): void {
    const [, name = "", path = ""] = /^\/clusters\/([^/]+)(\/.*)$/.exec(incoming.url ?? "") ?? [];
    asked.push(`${incoming.method} ${name} ${path}`);
    const emulator = clusters[name];
    const right = findRight(path);
    if (silent.has(name)) response.destroy();
    else if (!emulator) response.writeHead(404).end("404 page not found\n");
    else if (right && denied.has(right.plural)) response.writeHead(403).end(JSON.stringify(forbidden(right)));
    else {
      const { url, caPem: ca, token } = emulator;
      const headers = { authorization: `Bearer ${token}`, accept: incoming.headers.accept ?? "" };
      const passed = request(`${url}${path}`, { ca, headers, method: incoming.method ?? "GET" }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      passed.on("error", () => response.destroy());
      incoming.pipe(passed);
    }
  }

  const url = `http://127.0.0.1:${await listen(server)}`;
  return {
    url,
    asked,
    denied,
    silent,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

interface Right {
  readonly group: string;
  readonly namespace: string | undefined;
  readonly plural: string;
  readonly verb: string;
}

function findRight(path: string): Right | undefined {
  const [, group = "", , namespace, plural = "", name] =
    /^\/(?:api|apis\/([^/]+))\/(v[^/]+)(?:\/namespaces\/([^/]+))?\/([^/?]+)(?:\/([^/?]+))?/.exec(path) ?? [];
  return plural === "" ? undefined : { group, namespace, plural, verb: name === undefined ? "list" : "get" };
}

/** As an API server with RBAC says it. */
function forbidden({ group, namespace, plural, verb }: Right): object {
  const kind = group === "" ? plural : `${plural}.${group}`;
  const where = namespace === undefined ? "at the cluster scope" : `in the namespace "${namespace}"`;
  const message = `${kind} is forbidden: User "ann" cannot ${verb} resource "${plural}" in API group "${group}" ${where}`;
  return { kind: "Status", apiVersion: "v1", status: "Failure", message, reason: "Forbidden", code: 403 };
}
