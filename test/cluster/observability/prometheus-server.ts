/** A real Prometheus (Debian's package) that scrapes processes of the test, with the project's alerts. */
import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { stringify } from "yaml";
import { read } from "../../infra/manifests.ts";
import { freePort } from "../../loopback.ts";
import { until } from "../stage/until.ts";

export interface Rule {
  /** None of a recording rule. */
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface RuleGroups {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
}

/** The alerts and recording rules as Prometheus takes them, without the wrapping of its operator. */
export function readRules(): RuleGroups {
  const [manifest] = read("infra/observability/prometheus-rule.yaml");
  return manifest?.["spec"] as RuleGroups;
}

/** A query of the dashboard with everything chosen, and rates over this interval. */
export const fillVariables = (expr: string, interval: string): string =>
  expr.replaceAll("$__rate_interval", interval).replaceAll(/\$(?:cluster|job|namespace)/g, ".*");

/** The same alerts within seconds: each range 20 s, each `for` 2 s, and the thresholds of time 8 s. */
export function compressRules({ groups }: RuleGroups): RuleGroups {
  const compress = (expr: string): string =>
    expr
      .replaceAll(/\[\d+m\]/g, "[20s]")
      .replaceAll(/> 300\b/g, "> 8")
      .replaceAll("deadline_seconds) / 2", "deadline_seconds) / 225");
  return {
    groups: groups.map(({ name, rules }) => ({
      name,
      rules: rules.map((rule) => ({ ...rule, expr: compress(rule.expr), ...(rule.alert && { for: "2s" }) })),
    })),
  };
}

interface Target {
  readonly port: number;
  readonly labels: Readonly<Record<string, string>>;
}

export interface PrometheusServer {
  /** The number of series that the query returns now. */
  readonly query: (query: string) => Promise<number>;
  /** The alerts that fire, by name. */
  readonly firing: () => Promise<ReadonlySet<string>>;
  readonly stop: () => Promise<void>;
}

/** Scrapes and evaluates every second. */
export async function startPrometheus({ port: target, labels }: Target, rules: RuleGroups): Promise<PrometheusServer> {
  const folder = await mkdtemp(join(tmpdir(), "prometheus-"));
  const port = await freePort();
  const scrape = {
    job_name: "functions",
    honor_labels: true,
    static_configs: [{ targets: [`127.0.0.1:${target}`], labels }],
  };
  const global = { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "1s" };
  await writeFile(join(folder, "rules.yaml"), stringify(rules));
  await writeFile(
    join(folder, "prometheus.yaml"),
    stringify({ global, rule_files: ["rules.yaml"], scrape_configs: [scrape] }),
  );
  const flags = [
    `--config.file=${folder}/prometheus.yaml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child = spawn("prometheus", flags, { stdio: ["ignore", "ignore", "pipe"] });
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const exited = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve());
  });
  void exited.catch(() => {});

  async function get(path: string): Promise<unknown> {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(30_000) });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return ((await answer.json()) as { readonly data: unknown }).data;
  }

  let hasEnded = false;
  void exited.then(
    () => (hasEnded = true),
    () => (hasEnded = true),
  );
  const isReady = async (): Promise<boolean> => hasEnded || (await get("/api/v1/status/runtimeinfo").then(() => true));
  await until(() => `prometheus is ready: ${output}`, isReady);
  if (hasEnded) throw new Error(`prometheus did not start: ${output}`);
  return {
    query: async (query) =>
      ((await get(`/api/v1/query?query=${encodeURIComponent(query)}`)) as { result: unknown[] }).result.length,
    async firing() {
      const { alerts } = (await get("/api/v1/alerts")) as {
        alerts: { state: string; labels: { alertname: string } }[];
      };
      return new Set(alerts.filter(({ state }) => state === "firing").map(({ labels }) => labels.alertname));
    },
    async stop() {
      child.kill("SIGTERM");
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Runs `promtool test rules`; rejects with its output if a test fails. */
export async function testRules(rules: RuleGroups, tests: readonly object[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "promtool-"));
  try {
    await writeFile(join(folder, "rules.yaml"), stringify(rules));
    await writeFile(
      join(folder, "tests.yaml"),
      stringify({ rule_files: ["rules.yaml"], evaluation_interval: "1m", tests }),
    );
    await promisify(execFile)("promtool", ["test", "rules", join(folder, "tests.yaml")]);
  } finally {
    await rm(folder, { recursive: true });
  }
}
