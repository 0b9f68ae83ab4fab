/**
 * A cluster with webhook configurations, and the certificate job on it, under a clock that moves when the job waits.
 */
import { X509Certificate } from "node:crypto";
import { generateCertificates, type Certificates } from "../../../infra/certs/act/generate.ts";
import { runCertificateJob, type JobInput } from "../../../infra/certs/act/job.ts";
import { readCertificates } from "../../../infra/certs/x509.ts";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { createLog } from "../../../infra/log.ts";
import type { Secret, WebhookConfiguration } from "../../../infra/kubernetes/resources.ts";
import type { ManualClock } from "../../emulator/clock.ts";
import type { KubeObject, Store } from "../../emulator/store.ts";
import { add } from "../../builders/objects.ts";
import { setStage, type Stage } from "../../reconciler/stage.ts";

export const DAY = 86_400_000;
export const NAME = "rollout-operator-self-signed-certificate";
export const SERVICE = "rollout-operator.default.svc";
export const LABELS = { "grafana.com/namespace": "default", "grafana.com/inject-rollout-operator-ca": "true" };
export const VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io";
export const MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io";

export interface HookOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly caBundle?: string;
  readonly entries?: number;
  readonly failurePolicy?: string;
}

function hookConfiguration(name: string, options: HookOptions = {}): WebhookConfiguration {
  const { labels = LABELS, annotations = {}, caBundle, entries = 1, failurePolicy } = options;
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    metadata: { name, labels, annotations },
    webhooks: Array.from({ length: entries }, (_, at) => ({
      name: `${name}-${at}.grafana.com`,
      admissionReviewVersions: ["v1"],
      sideEffects: "None",
      ...(failurePolicy !== undefined && { failurePolicy }),
      clientConfig: {
        service: { namespace: "default", name: "rollout-operator", path: "/x" },
        ...(caBundle !== undefined && { caBundle: Buffer.from(caBundle).toString("base64") }),
      },
    })),
  };
}

export function addHook(store: Store, resource: string, name: string, options?: HookOptions): void {
  const kind = resource === VALIDATING ? "ValidatingWebhookConfiguration" : "MutatingWebhookConfiguration";
  store.create(resource, { ...hookConfiguration(name, options), kind } as unknown as KubeObject);
}

/** The CA bundles of a configuration's entries, "" where there is none. */
export function bundlesOf(store: Store, resource: string, name: string): string[] {
  const { webhooks } = store.get(resource, undefined, name) as unknown as WebhookConfiguration;
  return (webhooks ?? []).map(({ clientConfig }) => Buffer.from(clientConfig.caBundle ?? "", "base64").toString());
}

/** The Secret's texts by key. */
export function textsOf(secret: Pick<Secret, "data"> | undefined): Readonly<Record<string, string>> {
  const entries = Object.entries(secret?.data ?? {});
  return Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
}

export function secretOf(store: Store): Readonly<Record<string, string>> {
  return textsOf(store.get("secrets", "default", NAME) as Pick<Secret, "data"> | undefined);
}

export function putSecret(store: Store, texts: Readonly<Record<string, string>>): void {
  const data = Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString("base64")]),
  );
  const before = store.get("secrets", "default", NAME);
  if (before) store.update("secrets", { ...before, data });
  else add(store, "Secret", NAME, { type: "Opaque", data });
}

/** True if a client that trusts this bundle accepts the certificate. */
export function accepts(bundlePem: string, certPem: string): boolean {
  const leaf = new X509Certificate(certPem);
  return (
    bundlePem !== "" && readCertificates(bundlePem).some((ca) => leaf.checkIssued(ca) && leaf.verify(ca.publicKey))
  );
}

export function issueAt(
  now: () => number,
  dnsNames: readonly string[] = [SERVICE],
  validityDays = 360,
): () => Promise<Certificates> {
  return () => generateCertificates({ dnsNames, organization: "test", validityDays, now: new Date(now()) });
}

/** Waits advance the clock. */
export function movingClock(time: ManualClock): Clock {
  const now = (): number => time.now();
  return { now, monotonic: now, sleep: (ms) => time.advance(ms) };
}

export interface Run {
  /** Resolves with the exit code, or the error that ended the run. */
  readonly result: Promise<unknown>;
  readonly lines: readonly string[];
}

export function runJob(cluster: Cluster, clock: Clock, more: Partial<JobInput> = {}): Run {
  const lines: string[] = [];
  const result = runCertificateJob({
    cluster,
    clock,
    log: createLog({ level: "debug", write: (line) => void lines.push(line), now: () => new Date(clock.now()) }),
    namespace: "default",
    secretName: NAME,
    dnsNames: [SERVICE],
    issue: issueAt(clock.now),
    inject: true,
    stop: new AbortController().signal,
    ...more,
  });
  return { result: result.catch((error: unknown) => error), lines };
}

/** An embedded cluster with configurations to inject into. */
export async function setJobStage(): Promise<Stage> {
  const stage = await setStage();
  addHook(stage.emulator.store, VALIDATING, "no-downscale", { entries: 2 });
  addHook(stage.emulator.store, MUTATING, "prepare-downscale");
  return stage;
}

/** Tools on the current stage: run the job, and read its results. */
export function jobOn(stage: () => Stage) {
  const run = (more?: Parameters<typeof runJob>[2]): Run & { calls: string[] } => {
    const { cluster, calls } = stage().connect();
    return { ...runJob(cluster, movingClock(stage().time), more), calls };
  };
  const bundles = (): string[] => [
    ...bundlesOf(stage().emulator.store, VALIDATING, "no-downscale"),
    ...bundlesOf(stage().emulator.store, MUTATING, "prepare-downscale"),
  ];
  const secret = (): Readonly<Record<string, string>> => secretOf(stage().emulator.store);
  const text = (key: string): string => secret()[key] ?? "";
  return { run, bundles, secret, text };
}
