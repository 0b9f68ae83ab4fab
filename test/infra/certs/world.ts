/**
 * A Secret, two configurations, and a witness: readers may serve any certificate that the Secret ever served, and all
 * of them must be trusted.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { Certificates } from "../../../infra/certs/act/generate.ts";
import { injectCaBundles } from "../../../infra/certs/act/inject.ts";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { WebhookConfiguration } from "../../../infra/kubernetes/resources.ts";
import { manualClock } from "../../emulator/clock.ts";
import { createStore, type Store } from "../../emulator/store.ts";
import { portOf } from "../../reconciler/store-port.ts";
import * as on from "./stage.ts";

const T0 = Date.UTC(2026, 0, 1);
export const first = await on.issueAt(() => T0)();
const issueSix = (day: Day) =>
  Promise.all(Array.from({ length: 6 }, (_, at) => on.issueAt(() => T0 + day * on.DAY + at)()));

/** 0 begins without a Secret; 240 with the pair of day 0, due for renewal, which every configuration trusts. */
export type Day = 0 | 240;
const MADE = { 0: await issueSix(0), 240: await issueSix(240) };

export interface World {
  readonly store: Store;
  /** The violations that occurred. */
  readonly violations: readonly string[];
  readonly clock: Clock;
  readonly issue: () => Promise<Certificates>;
}

export function createWorld(day: Day): World {
  const time = manualClock(T0 + day * on.DAY);
  const store = createStore(time);
  const violations: string[] = [];
  const given = day > 0 ? { caBundle: `${first.caPem}\n` } : {};
  if (day > 0) on.putSecret(store, { ca: `${first.caPem}\n`, cert: first.certPem, key: first.keyPem });
  on.addHook(store, on.VALIDATING, "no-downscale", given);
  on.addHook(store, on.MUTATING, "prepare-downscale", given);

  const served = new Set(day > 0 ? [first.certPem] : []);
  store.subscribe(() => {
    const cert = on.secretOf(store)["cert"];
    if (cert !== undefined) served.add(cert);
    for (const [name, bundle] of bundles(store)) {
      const refused = bundle === "" ? [] : [...served].filter((pem) => !on.accepts(bundle, pem));
      if (refused.length > 0)
        violations.push(`${name} refuses ${refused.map((pem) => new X509Certificate(pem).serialNumber).join()}`);
    }
  });
  let made = 0;
  return {
    store,
    violations,
    clock: on.movingClock(time),
    issue: async () => MADE[day][made++ % MADE[day].length] ?? first,
  };
}

function bundles(store: Store): (readonly [name: string, bundle: string])[] {
  return [on.VALIDATING, on.MUTATING].flatMap((resource) =>
    store
      .list(resource)
      .flatMap(({ metadata: { name } }) =>
        on.bundlesOf(store, resource, name).map((bundle) => [name, bundle] as const),
      ),
  );
}

/** One pair serves, renewed, and everything trusts it; nothing that must never happen did. */
export function checkEnd({ store, violations }: World): void {
  const { ca = "", cert = "", ["next.crt"]: next } = on.secretOf(store);
  assert.ok(on.accepts(ca, cert), "the Secret's own CA signs its certificate");
  assert.ok(cert !== first.certPem && next === undefined, "the renewal is through");
  for (const [name, bundle] of bundles(store)) assert.equal(bundle, ca, `${name} has the bundle`);
  assert.deepEqual(violations, []);
}

/** Decides when a call takes effect, and whether its caller learns of it. */
export type Gate = <T>(what: string, run: () => Promise<T>) => Promise<T>;

const connect = (store: Store, gate: Gate): Cluster =>
  portOf(store, ({ verb }, effect) => gate(verb, async () => effect()));

/** A job whose every call, and every wait, goes through the gate. */
export function startJob({ store, clock, issue }: World, gate: Gate): Promise<unknown> {
  const gated = { ...clock, sleep: (ms: number) => gate("sleep", () => clock.sleep(ms)) };
  return on.runJob(connect(store, gate), gated, { issue }).result;
}

export function startHealer({ store }: World, gate: Gate): Promise<unknown> {
  return injectCaBundles(connect(store, gate), { namespace: "default", secretName: on.NAME });
}

/** Another client removes a bundle from a configuration. */
export function clearBundle({ store }: World, name = "no-downscale"): void {
  const configuration = store.get(on.VALIDATING, undefined, name) as unknown as WebhookConfiguration;
  const webhooks = configuration.webhooks?.map((entry) => ({ ...entry, clientConfig: { url: "https://elsewhere" } }));
  store.update(on.VALIDATING, { ...configuration, webhooks } as never);
}

export interface Puppet {
  /** Lets one call take effect; resolves once its actor has reached its next call, or with false at its end. */
  readonly step: () => Promise<boolean>;
  readonly finish: () => Promise<unknown>;
}

/** An actor that moves only on request. */
export function puppet(start: (gate: Gate) => Promise<unknown>): Puppet {
  const waiting: (() => void)[] = [];
  let over = false;
  const gate: Gate = async (_what, run) => {
    await new Promise<void>((go) => waiting.push(go));
    return run();
  };
  const ended = start(gate).finally(() => (over = true));
  const step = async (): Promise<boolean> => {
    while (waiting.length === 0 && !over) await setImmediate();
    waiting.shift()?.();
    return !over;
  };
  return {
    step,
    finish: async () => {
      while (await step());
      return ended;
    },
  };
}
