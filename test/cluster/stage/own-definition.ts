/** A definition of ours under an API group of its own: the one of the cluster is others', too. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { type Admin, connectAdmin } from "./client.ts";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

export interface OwnDefinition {
  readonly group: string;
  /** Of its objects in the namespace `default`. */
  readonly path: string;
  /** Creates it, and resolves once its objects are served. */
  readonly create: () => Promise<Admin>;
  readonly remove: () => Promise<void>;
}

/** `group` is the one in the manifest, which it replaces. */
export function ownDefinition({
  plural,
  version,
  group,
}: {
  readonly plural: string;
  readonly version: string;
  readonly group: string;
}): OwnDefinition {
  const own = `zw-${randomBytes(3).toString("hex")}.example.com`;
  const path = `/apis/${own}/${version}/namespaces/default/${plural}`;
  let admin: Admin | undefined;
  return {
    group: own,
    path,
    async create() {
      const created = await connectAdmin(process.env["KUBECONFIG"]);
      admin = created;
      const text = await readFile(new URL(`../../../infra/manifests/crds/${plural}.yaml`, import.meta.url), "utf8");
      await created.call("POST", CRDS, parse(text.replaceAll(group, own)));
      const isServed = (): Promise<boolean> =>
        created.call("GET", path).then(
          () => true,
          () => false,
        );
      while (!(await isServed())) await new Promise((resolve) => setTimeout(resolve, 50));
      return created;
    },
    async remove() {
      await admin?.call("DELETE", `${CRDS}/${plural}.${own}`);
      admin?.close();
    },
  };
}
