/**
 * Zonewise as `infra/manifests/complete` installs it in the namespace `default`, on the embedded cluster: its processes
 * run in this one, and every request between them takes no socket.
 */
import { X509Certificate } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { TestContext } from "node:test";
import { setImmediate as setImmediateTurn } from "node:timers/promises";
import { composeFunctions } from "../../../functions/compose.ts";
import { composeStatusPage } from "../../../functions/status/compose.ts";
import { generateCertificates, type Certificates } from "../../../infra/certs/act/generate.ts";
import type { Machine } from "../../../infra/machine.ts";
import { compose as composeReconciler } from "../../../reconciler/run/compose.ts";
import { run } from "../../../reconciler/run/run.ts";
import type { RunInput } from "../../../reconciler/run/session.ts";
import { deployFunctions } from "../../demo/functions.ts";
import { withDefaults } from "../../emulator/defaults.ts";
import type { PostReview } from "../../emulator/admission/call-webhook.ts";
import { type HostAnswer, openOver, reset, type Sent, serverEnd } from "../../emulator/in-process.ts";
import { dig, type KubeObject, numberOf, put, textOf, timestamp } from "../../emulator/objects.ts";
import { writeBudget } from "../../reconciler/budget-stage.ts";
import { deploy, setStage, type Stage } from "../../reconciler/stage.ts";
import { whyNotTrusted } from "../../simulation/certificates/trust.ts";
import { openTerminal, type Terminal } from "../stage.ts";
import { applyFolder } from "./kubectl.ts";

export const NAMESPACE = "default";
export const CRON_JOBS = "cronjobs.batch";
export const CRON_JOB = "zonewise-reconciler";
export const SETS = "statefulsets.apps";
const SECRET = "rollout-operator-self-signed-certificate";

export interface Installation extends Pick<Terminal, "run"> {
  readonly stage: Stage;
  /** False while the CronJob's runs do not come to a tick. */
  runs: boolean;
  /** A run every 5 s for so many seconds, as long as the CronJob starts them. */
  readonly tickFor: (seconds: number) => Promise<void>;
  /** What a browser shows of the status page, but for its list of Events. */
  readonly page: () => Promise<string>;
  /** What pods and Prometheus answer; undefined where nobody listens. */
  hosts: (sent: Sent) => HostAnswer | undefined;
}

/** A certificate is valid by the cluster's clock, which starts again with each of them. */
let certificates: Promise<Certificates> | undefined;

/** Three zones of two ready pods each under a budget, and nothing to complain of. */
export async function install(t: TestContext, env: Readonly<Record<string, string>> = {}): Promise<Installation> {
  let post: PostReview = () => Promise.reject(new Error("connect: connection refused"));
  const stage = await setStage({ post: (...review) => post(...review) });
  t.after(() => stage.close());
  const { store } = stage.emulator;
  const machine: Machine = {
    ...stage.clock,
    connect: async () => stage.emulator.connection(),
    open: openOver((sent, client) =>
      setImmediate(() => {
        const answer = self.hosts(sent);
        if (!answer) return client.fail(reset("connect ECONNREFUSED"));
        client.head(answer.status, { "content-type": "application/json" });
        client.chunk(answer.body);
        client.end();
      }),
    ),
    write: () => {},
    generate: (options) => (certificates ??= generateCertificates(options)),
  };
  const common = { KUBERNETES_NAMESPACE: NAMESPACE, NAMESPACES: NAMESPACE, ...env };
  await applyFolder(stage, "infra/manifests/crds", NAMESPACE);
  await applyFolder(stage, "infra/manifests/complete", NAMESPACE);
  // The demonstration's play along with the replicas.
  store.remove("deployments.apps", NAMESPACE, "zonewise-functions");
  store.remove("services", NAMESPACE, "rollout-operator");
  await deployFunctions(store, NAMESPACE);
  const { run: input } = await composeReconciler({ ...common, POD_NAME: "zonewise-reconciler-1" }, machine);
  const { routes } = await composeFunctions({ ...common }, machine);
  const memory: NonNullable<RunInput["memory"]> = new Map();
  post = (url, { ca }, data) => {
    const functions = store.get("deployments.apps", NAMESPACE, "zonewise-functions");
    if (numberOf(dig(functions, "spec", "replicas")) === 0)
      return Promise.reject(new Error(`Post "${url.href}": no endpoints available for service "rollout-operator"`));
    const untrusted = whyNotTrusted(shownBy(stage), ca, stage.clock.now());
    if (untrusted !== undefined) return Promise.reject(new Error(`Post "${url.href}": ${untrusted}`));
    return answerOf(routes.get(url.pathname), { url, data });
  };
  const page = await composeStatusPage({ ...common }, machine);
  const terminal = await openTerminal(t, stage, { ticks: false, confirm: async () => true });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const self: Installation = {
    stage,
    run: terminal.run,
    hosts: ({ host }) => (host.startsWith("prometheus") ? vector(0) : { status: 200, body: "{}" }),
    runs: true,
    async tickFor(seconds) {
      const endAt = stage.clock.now() + seconds * 1000;
      while (stage.clock.now() < endAt) {
        if (self.runs && isStarted(store.get(CRON_JOBS, NAMESPACE, CRON_JOB))) {
          await end(stage, run({ ...input, memory, once: true, stop: stop.signal }));
          noteRun(stage);
        }
        await stage.time.advance(INTERVAL_MS);
      }
    },
    page: async () => textOfPage(await answerOf(page.answer, { url: new URL("http://localhost/") })),
  };
  deploy(stage, "app:1", { replicas: 2, podLabels: { "rollout-group": "ingester" } });
  for (const set of store.list(SETS, NAMESPACE)) store.update(SETS, withDefaults(SETS, set));
  writeBudget(stage);
  await stage.time.advance(2000);
  await self.tickFor(10);
  return self;
}

/** What Prometheus answers: so many series. */
export const vector = (series: number): HostAnswer => {
  const result = Array.from({ length: series }, () => ({ metric: { __name__: "errors" }, value: [0, "1"] }));
  return { status: 200, body: JSON.stringify({ status: "success", data: { resultType: "vector", result } }) };
};

/** The default of RECONCILE_INTERVAL. */
const INTERVAL_MS = 5000;
/** Turns of the event loop that a run takes which waits for nothing. */
const TURNS = 2000;

/** Resolves with the run's end; time goes on while it waits. */
async function end(stage: Stage, running: Promise<unknown>): Promise<void> {
  let isOver = false;
  void running.finally(() => (isOver = true));
  while (!isOver) {
    for (let turn = 0; turn < TURNS && !isOver; turn++) await setImmediateTurn();
    if (!isOver) await stage.time.advance(1000);
  }
  await running;
}

const isStarted = (cronJob: KubeObject | undefined): boolean =>
  cronJob !== undefined && dig(cronJob, "spec", "suspend") !== true;

function noteRun({ emulator: { store }, clock }: Stage): void {
  const cronJob = store.get(CRON_JOBS, NAMESPACE, CRON_JOB);
  if (cronJob) store.update(CRON_JOBS, put(cronJob, ["status", "lastScheduleTime"], timestamp(clock.now())));
}

const shown = new Map<string, X509Certificate>();

/** The certificate that the functions have of their Secret. */
function shownBy({ emulator: { store } }: Stage): X509Certificate | undefined {
  const data = textOf(dig(store.get("secrets", NAMESPACE, SECRET), "data", "tls.crt"));
  if (data === undefined) return undefined;
  const found = shown.get(data) ?? new X509Certificate(Buffer.from(data, "base64"));
  shown.set(data, found);
  return found;
}

type Handler = (message: IncomingMessage, response: ServerResponse) => Promise<void>;

/** What a handler of ours answers with 200; rejects otherwise. */
function answerOf(handler: Handler | undefined, { url, data }: { url: URL; data?: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    let [status, text] = [0, ""];
    const failed = (): void => reject(new Error(`${url.pathname} answered ${status}: ${text}`));
    const sent = {
      method: data === undefined ? "GET" : "POST",
      host: url.host,
      path: url.pathname + url.search,
      headers: {
        host: url.host,
        "content-type": "application/json",
        "content-length": String(Buffer.byteLength(data ?? "")),
      },
      body: data ?? "",
    };
    const { message, response } = serverEnd(sent, {
      head: (code) => void (status = code),
      chunk: (part) => void (text += part.toString()),
      end: () => (status === 200 ? resolve(text) : failed()),
      destroy: failed,
    });
    if (handler) void handler(message, response);
    else failed();
  });
}

/** As a reader without style sees it. */
function textOfPage(html: string): string {
  const [, body = ""] = html.split("<body>");
  const [groups = ""] = body.split("<h2>Last decisions</h2>");
  return groups
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&quot;", '"')
    .replaceAll(/\s+/g, " ");
}
