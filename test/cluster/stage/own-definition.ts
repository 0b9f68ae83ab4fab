/** A definition of ours under an API group of its own: the one of the cluster is others', too. */
import { randomBytes } from "node:crypto";
import { type Admin, connectAdmin, remove } from "./client.ts";
import { type Definition, type OwnKind, putDefinition, readDefinition } from "./definitions.ts";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

export interface OwnDefinition {
  readonly group: string;
  /** Of its objects; in the namespace `default`, if they are in namespaces. */
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
  isClusterWide = false,
}: {
  readonly plural: OwnKind;
  readonly version: string;
  readonly group: string;
  readonly isClusterWide?: boolean;
}): OwnDefinition {
  const own = `zw-${randomBytes(3).toString("hex")}.example.com`;
  const path = `/apis/${own}/${version}/${isClusterWide ? "" : "namespaces/default/"}${plural}`;
  let admin: Admin | undefined;
  return {
    group: own,
    path,
    async create() {
      const created = await connectAdmin(process.env["KUBECONFIG"]);
      admin = created;
      const text = JSON.stringify(await readDefinition(plural));
      await putDefinition(created, JSON.parse(text.replaceAll(group, own)) as Definition);
      return created;
    },
    async remove() {
      if (!admin) return;
      await remove(admin, `${CRDS}/${plural}.${own}`);
      admin.close();
    },
  };
}
