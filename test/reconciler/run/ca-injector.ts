/** Injections of the CA into the configurations of an emulated cluster. */
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { type CaInjectionInput, createCaInjection } from "../../../reconciler/run/ca-injection.ts";
import * as on from "../../infra/certs/stage.ts";
import type { Stage } from "../stage.ts";

const forever = new AbortController().signal;

/** A check of the webhook configurations, with its log, calls and metrics. */
export function injector(stage: Stage, more: Partial<CaInjectionInput> = {}) {
  const lines: string[] = [];
  const { cluster, calls } = stage.connect();
  const metrics = createMetrics();
  const log = createLog({
    level: "info",
    write: (line) => void lines.push(line),
    now: () => new Date(stage.time.now()),
  });
  const injection = createCaInjection({
    cluster,
    clock: stage.clock,
    log,
    metrics,
    namespace: "default",
    secretName: on.NAME,
    inject: true,
    ...more,
  });
  const policies = async (): Promise<string[]> =>
    (await metrics.render()).split("\n").filter((line) => line.startsWith("kube_validating_webhook_failure_policy{"));
  return { ...injection, injectOnce: () => injection.once(forever), lines, calls, policies, metrics };
}

/** Stores a certificate; resolves with its CA. */
export async function giveSecret({ emulator, time }: Stage): Promise<string> {
  const { caPem, certPem, keyPem } = await on.issueAt(() => time.now())();
  on.putSecret(emulator.store, { ca: caPem, cert: certPem, key: keyPem });
  return caPem;
}

/** The CA bundles of a validating configuration. */
export const bundle = ({ emulator }: Stage, name: string): string[] =>
  on.bundlesOf(emulator.store, on.VALIDATING, name);
