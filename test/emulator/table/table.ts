/** meta.k8s.io/v1 Tables: what `kubectl get` prints. */
import type { KubeObject } from "../objects.ts";
import type { Ask } from "../request.ts";
import { metadataText, objectText } from "../wire.ts";
import { columnsOf } from "./columns.ts";

/** With `withColumns` false the header is left out, as in all but the first event of a watch. */
export function tableText(ask: Ask, objects: readonly KubeObject[], metadata: object, withColumns = true): string {
  const columns = columnsOf(ask.kind);
  const definitions = columns.map(({ name, type, format, description, priority }) => ({ name, type, format, description, priority }));
  const include = ask.query.get("includeObject") ?? "Metadata";
  const now = ask.now();
  const rows = objects.map((object) => {
    const cells = JSON.stringify(columns.map((column) => column.cell(object, now)));
    const shown = include === "Object" ? objectText(ask.kind, object) : metadataText(object);
    return `{"cells":${cells},"object":${include === "None" ? "null" : shown}}`;
  });
  const header = withColumns ? JSON.stringify(definitions) : "null";
  return `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":${JSON.stringify(metadata)},"columnDefinitions":${header},"rows":[${rows.join(",")}]}`;
}
