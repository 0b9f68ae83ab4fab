/** The two clusters that programs are played on, and how each is known to be quiet. */
import { setTimeout as sleep } from "node:timers/promises";
import { manualClock } from "../../../emulator/clock.ts";
import { startEmulator } from "../../../emulator/index.ts";
import type { OwnKind } from "../../stage/definitions.ts";
import { readDefinition } from "../../stage/definitions.ts";
import { type Client, connect } from "../client.ts";
import { post } from "../requests.ts";
import type { Entry } from "../stage.ts";
import type { Ground } from "./play.ts";

export const OWN_KINDS: readonly OwnKind[] = [
  "phasedrollouts",
  "replicatemplates",
  "rolloutgates",
  "zoneawarepoddisruptionbudgets",
];

/** Long enough for all that controllers and kubelets of the embedded cluster do after one call. */
const QUIET_MS = 5000;

/** An embedded cluster of its own for one program: it plays the same every time, as its clock is turned by hand. */
export async function embeddedGround(namespace: string): Promise<Ground & { stop: () => Promise<void> }> {
  const clock = manualClock(Date.now());
  const emulator = await startEmulator({ clock });
  const client = connect(emulator.kubeconfig());
  for (const kind of OWN_KINDS)
    await client.call(post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", await readDefinition(kind)));
  const newest = new Map<string, number>();
  const certificate = (name: string): void =>
    void emulator.store.create("configmaps", {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "kube-root-ca.crt", namespace: name, annotations: { "kubernetes.io/description": "" } },
      data: { "ca.crt": "" },
    });
  emulator.store.subscribe(({ type, resource, object }) => {
    const { name, resourceVersion } = object.metadata;
    if (resource === "namespaces" && type === "ADDED") setImmediate(certificate, name);
    if (object.metadata.namespace === namespace) newest.set(resource.split(".")[0] ?? "", Number(resourceVersion));
  });
  return {
    client,
    settle: async ({ watched }) => {
      await clock.advance(QUIET_MS);
      const isBehind = ([plural, version]: [string, number]): boolean =>
        watched.follows(plural) && watched.newest(plural) < version;
      while ([...newest].some(isBehind)) await sleep(1);
    },
    stop: async () => {
      client.close();
      await emulator.stop();
    },
  };
}

/**
 * Milliseconds that the real cluster has to come to the state of the embedded one: its garbage collector looks for new
 * kinds every 30 s.
 */
const PATIENCE_MS = 120_000;

/** A real cluster. It has settled once it is as `expected` says; after a while it is taken as it is. */
export function realGround(client: Client, isExpected: (entry: Entry, at: number) => boolean): Ground {
  return {
    client,
    settle: async ({ watched, record, at, isSeen }) => {
      if (at < 0) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, PATIENCE_MS);
      let isDue = false;
      const check = (): void => {
        isDue = false;
        if (isSeen() && isExpected(record(), at)) resolve();
      };
      watched.onEvent(() => {
        // Events come in bursts.
        if (!isDue) setTimeout(check, 5);
        isDue = true;
      });
      check();
      await promise;
      clearTimeout(timer);
      watched.onEvent(() => {});
    },
  };
}
