/** A real Prometheus that scrapes an exporter of ours, each on a free port of the loopback interface. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, listen } from "../loopback.ts";
import type { ScriptedTls } from "./scripted.ts";

/** Why the tests with it are left out, or false. */
export const PROMETHEUS_MISSING =
  spawnSync("prometheus", ["--version"]).status === 0
    ? false
    : "prometheus is not installed (apt-get install prometheus)";

/** Far longer than anything takes on a machine under load. */
const MAX_MS = 180_000;

export interface RealPrometheus extends AsyncDisposable {
  readonly url: string;
  /** The value of the exporter's gauge `test_errors`; it is scraped within a second or so. */
  errors: number;
  /** Resolves once the query API gives a series, or none. */
  readonly until: (expr: string, hasSeries: boolean) => Promise<void>;
}

const CONFIG = (port: number): string => `
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs: [{job_name: test, static_configs: [{targets: ["127.0.0.1:${port}"]}]}]
`;

export async function startRealPrometheus(): Promise<RealPrometheus> {
  const folder = await mkdtemp(join(tmpdir(), "prometheus-"));
  const exporter = createServer((_request, response) => {
    response
      .writeHead(200, { "content-type": "text/plain; version=0.0.4" })
      .end(`# TYPE test_errors gauge\ntest_errors ${prometheus.errors}\n`);
  });
  const config = join(folder, "prometheus.yml");
  await writeFile(config, CONFIG(await listen(exporter)));
  const port = await freePort();
  const flags = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child = spawn("prometheus", [...flags, "--log.level=error"], { stdio: ["ignore", "ignore", "inherit"] });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const url = `http://127.0.0.1:${port}`;
  const ask = async (expr: string): Promise<number | undefined> => {
    const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`).catch(() => undefined);
    if (!answer?.ok) return undefined;
    return ((await answer.json()) as { data: { result: unknown[] } }).data.result.length;
  };
  const prometheus: RealPrometheus = {
    url,
    errors: 0,
    async until(expr, hasSeries) {
      const end = performance.now() + MAX_MS;
      for (let series = await ask(expr); series === undefined || series > 0 !== hasSeries; series = await ask(expr)) {
        if (child.exitCode !== null) throw new Error(`prometheus has ended with ${child.exitCode}`);
        if (performance.now() > end)
          throw new Error(`not within ${MAX_MS} ms: ${expr} has ${hasSeries ? "" : "no "}series`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exited;
      exporter.close().closeAllConnections();
      await rm(folder, { recursive: true, force: true });
    },
  };
  await prometheus.until("test_errors", true);
  return prometheus;
}

/** TLS in front of a server: it passes on what carries this `Authorization`, and answers 401 to everything else. */
export async function startGuard(
  target: string,
  authorization: string,
  tls: ScriptedTls,
): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createTlsServer(tls, (incoming, response) => {
    if (incoming.headers.authorization !== authorization) return void response.writeHead(401).end();
    const { host: _host, ...headers } = incoming.headers;
    const passed = request(new URL(incoming.url ?? "/", target), { method: incoming.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    incoming.pipe(passed);
  });
  const port = await listen(server);
  return {
    url: `https://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => server.close().closeAllConnections(),
  };
}
