/**
 * The Kubernetes port straight onto the embedded cluster's store: the verbs that certificates need, each behind a gate.
 */
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { Resource } from "../../../infra/kubernetes/resources.ts";
import { ApiError, type KubeObject, type Store } from "../../emulator/store.ts";

/** Decides when a call takes effect, and whether its caller learns of it. */
export type Gate = <T>(what: string, run: () => Promise<T>) => Promise<T>;

const CODES = { AlreadyExists: "AlreadyExists", Conflict: "Conflict", NotFound: "NotFound" } as const;
type Operation = { readonly op: "test" | "add"; readonly path: string; readonly value: string };

export function portOf(store: Store, gate: Gate): Cluster {
  const keyOf = ({ plural, group }: Resource): string => (group === "" ? plural : `${plural}.${group}`);
  const call = <T>(what: string, run: () => unknown): Promise<T> =>
    gate(what, async () => {
      try {
        return run() as T;
      } catch (error) {
        throw error instanceof ApiError
          ? new RolloutError(CODES[error.status.reason as keyof typeof CODES], error.message)
          : error;
      }
    });
  const missing = (): never => {
    throw new RolloutError("NotFound", "gone");
  };
  const verbs: Partial<Cluster> = {
    async *list(resource) {
      const items = await call<readonly never[]>("list", () => store.list(keyOf(resource)));
      yield { items, resourceVersion: "" };
    },
    get: (resource, { namespace, name }) => call("get", () => store.get(keyOf(resource), namespace, name) ?? missing()),
    create: (resource, { body }) => call("create", () => store.create(keyOf(resource), body as KubeObject)),
    replace: (resource, { body }) => {
      const object = body as unknown as KubeObject;
      return call("replace", () =>
        store.update(keyOf(resource), object, { expectedResourceVersion: object.metadata.resourceVersion }),
      );
    },
    patch: (resource, { name, body }) =>
      call("patch", () => {
        const before = store.get(keyOf(resource), undefined, name) ?? missing();
        const object = structuredClone(before) as KubeObject & { webhooks: { clientConfig: { caBundle?: string } }[] };
        for (const { op, path, value } of body as readonly Operation[]) {
          const entry = object.webhooks[Number(path.split("/")[2])];
          if (op === "test" && before.metadata.resourceVersion !== value)
            throw new RolloutError("Invalid", "test failed");
          if (op === "add" && entry) entry.clientConfig.caBundle = value;
        }
        return store.update(keyOf(resource), object).metadata.resourceVersion;
      }),
  };
  return verbs as Cluster;
}
