/** Custom resources: definition, pruning, defaults, tables, and requests without the definition. What is invalid, programs and test/infra/definitions.ts ask. */
import { dig, listOf } from "../../../emulator/objects.ts";
import { del, get, patch, post } from "../requests.ts";
import type { Scenario, Stage } from "../stage.ts";

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

function definition(group: string): object {
  const properties = {
    spec: {
      type: "object",
      required: ["size"],
      properties: {
        size: { type: "integer", minimum: 1 },
        mode: { type: "string", enum: ["a", "b"], default: "a" },
        share: { "x-kubernetes-int-or-string": true },
        free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        list: { type: "array", items: { type: "object", properties: { name: { type: "string" } } } },
      },
    },
    status: { type: "object", properties: { phase: { type: "string" } } },
  };
  const additionalPrinterColumns = [
    { name: "Size", type: "integer", jsonPath: ".spec.size" },
    { name: "Phase", type: "string", jsonPath: ".status.phase" },
  ];
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties } },
          subresources: { status: {} },
          additionalPrinterColumns,
        },
      ],
    },
  };
}

export const customResources: readonly Scenario[] = [
  {
    name: "a custom resource is defined, pruned and defaulted",
    run: async (stage) => {
      const group = `${stage.namespace}.example.com`;
      const all = `/apis/${group}/v1/namespaces/${stage.namespace}/widgets`;
      const widget = (name: string, spec: unknown, more: object = {}): object => ({
        apiVersion: `${group}/v1`,
        kind: "Widget",
        metadata: { name },
        spec,
        ...more,
      });
      await stage.call("before its definition", get(all));
      const watching = await stage.watch(`${DEFINITIONS}?watch=1&fieldSelector=metadata.name%3Dwidgets.${group}`);
      await stage.call("define", post(DEFINITIONS, definition(group)), "spec.names", "metadata.generation");
      await watching.until((events) =>
        listOf(dig(events.at(-1)?.object, "status", "conditions")).some(
          (condition) => dig(condition, "type") === "Established" && dig(condition, "status") === "True",
        ),
      );
      await served(stage, all);
      const spec = { size: 1, unknown: 1, free: { x: { y: 1 } }, list: [{ name: "n", other: 1 }], share: "10%" };
      await stage.call("prune and default", post(all, widget("a", spec, { status: { phase: "lost" }, extra: 1 })), ".");
      await stage.refused(
        "a strategic patch is not for these",
        patch(`${all}/a`, { spec: { size: 3 } }, "application/strategic-merge-patch+json"),
      );
      await stage.call("list", get(all), "kind", "apiVersion");
      const table = await stage.send(get(all, "application/json;as=Table;v=v1;g=meta.k8s.io"));
      stage.record("table", [
        listOf(dig(table.body, "columnDefinitions")).map((column) => dig(column, "name")),
        listOf(dig(table.body, "rows")).map((row) => dig(row, "cells")),
      ]);
      await stage.call("a version that is not served", get(all.replace("/v1/", "/v2/")));
      await stage.call("delete", del(`${all}/a`), "status", "details");
      await stage.send(del(`${DEFINITIONS}/widgets.${group}`));
      await watching.until((events) => events.at(-1)?.type === "DELETED");
    },
  },
];

/** Waits until a definition is served, which is a moment after it is Established. */
async function served(stage: Stage, path: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) if ((await stage.send(get(path))).status === 200) return;
}
