/** A namespace of its own for a test, with what it needs to be removed again. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Admin, connectAdmin, remove } from "./client.ts";
import { type KubectlResult, runKubectl } from "./kubectl.ts";

export interface Place {
  /** The tests' own connection to the API server. */
  readonly admin: Admin;
  /** A call as the administrator. */
  readonly call: Admin["call"];
  readonly namespace: string;
  /** A temporary folder, removed with the namespace. */
  readonly folder: string;
  /** kubectl in the namespace; `input` goes to its stdin. */
  readonly kubectl: (args: readonly string[], input?: object) => Promise<KubectlResult>;
  /** What to do at the end of the test; the last is done first. */
  readonly defer: (cleanUp: () => unknown) => void;
}

/** A place for its owner, who has to close it. */
export interface OpenPlace extends Place {
  readonly close: () => Promise<void>;
}

/** Opens a place on the cluster of KUBECONFIG. */
export async function openPlace(labels: Readonly<Record<string, string>> = {}): Promise<OpenPlace> {
  const admin = await connectAdmin(process.env["KUBECONFIG"]);
  const namespace = `zw-${randomBytes(4).toString("hex")}`;
  const folder = await mkdtemp(join(tmpdir(), "zonewise-"));
  const deferred: (() => unknown)[] = [];
  await admin.call("POST", "/api/v1/namespaces", { metadata: { name: namespace, labels } });
  return {
    admin,
    call: admin.call,
    namespace,
    folder,
    kubectl: (args, input) => runKubectl(["-n", namespace, ...args], input),
    defer: (cleanUp) => void deferred.unshift(cleanUp),
    async close() {
      for (const cleanUp of deferred) await closing(cleanUp);
      await remove(admin, `/api/v1/namespaces/${namespace}`);
      admin.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Never rejects: it must neither hide why a test has failed nor fail one. */
async function closing(cleanUp: () => unknown): Promise<void> {
  try {
    await cleanUp();
  } catch (error) {
    console.error("while closing:", error);
  }
}

/** The same for one test, which closes it. */
export async function openPlaceFor(
  t: Pick<TestContext, "after">,
  labels?: Readonly<Record<string, string>>,
): Promise<Place> {
  const place = await openPlace(labels);
  t.after(place.close);
  return place;
}
