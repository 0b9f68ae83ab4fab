/** Strategic merge patches of lists, which are of one field in programs. */
import { dig } from "../../../emulator/objects.ts";
import { at, patch, pod, post, statefulSet, STRATEGIC } from "../requests.ts";
import type { Scenario } from "../stage.ts";

const TEMPLATE = "spec.template.spec.containers";

export const patches: readonly Scenario[] = [
  {
    name: "a strategic merge patch merges lists by key",
    run: async (stage) => {
      const one = at(stage.namespace, "statefulsets", "z");
      await stage.call(
        "create",
        post(at(stage.namespace, "statefulsets"), statefulSet("z", { replicas: 0 })),
        "spec",
        "status",
        "metadata.generation",
      );
      const containers = (list: object[]): object => ({ spec: { template: { spec: { containers: list } } } });
      const merge = (step: string, container: object, ...more: string[]): Promise<unknown> =>
        stage.call(step, patch(one, containers([container]), STRATEGIC), TEMPLATE, ...more);
      await merge("one container's image", { name: "main", image: "app:2" }, "metadata.generation");
      const env = ["1", "2"].map((value, i) => ({ name: "AB".charAt(i), value }));
      await merge("a container more, with an environment", { name: "side", image: "side:1", env });
      await merge("one variable of it", { name: "side", env: [{ name: "B", value: "3" }] });
      await merge("one variable less", { name: "side", env: [{ name: "A", $patch: "delete" }] });
      await merge("the container less", { name: "side", $patch: "delete" }, "metadata.generation");
      await stage.call(
        "a merge patch replaces the list",
        patch(one, containers([{ name: "other", image: "other:1" }])),
        TEMPLATE,
      );
      await stage.call(
        "labels do not count as a generation",
        patch(one, { metadata: { labels: { a: "b" } } }),
        "metadata.generation",
        "metadata.labels",
      );
      await stage.call("an immutable field", patch(one, { spec: { serviceName: "other" } }));
      await stage.call(
        "a selector that does not fit",
        patch(one, { spec: { template: { metadata: { labels: { app: "other" } } } } }),
      );
      await stage.call("negative replicas", patch(one, { spec: { replicas: -1 } }));
      await stage.call("no containers", patch(one, containers([])));
    },
  },
  {
    name: "conditions merge by type, and the status is written separately",
    run: async (stage) => {
      const all = at(stage.namespace, "pods");
      const one = `${all}/a`;
      await stage.send(
        post(
          all,
          pod(
            "a",
            { annotations: { "sim/ready": "false" } },
            { readinessGates: [{ conditionType: "example.com/open" }] },
          ),
        ),
      );
      const watching = await stage.watch(`${all}?watch=1&resourceVersion=0`);
      await watching.until((events) => dig(events.at(-1)?.object, "status", "phase") === "Running");
      const gate = (status: string): object => ({ status: { conditions: [{ type: "example.com/open", status }] } });
      await stage.call("another condition", patch(`${one}/status`, gate("False"), STRATEGIC), "status.conditions");
      await stage.call(
        "the same condition with another status",
        patch(`${one}/status`, gate("True"), STRATEGIC),
        "status.conditions",
      );
      await stage.call(
        "status through the object is ignored",
        patch(one, { status: { phase: "Failed" }, metadata: { labels: { seen: "1" } } }),
        "status.phase",
        "metadata.labels",
      );
      await stage.call(
        "status through the status is not",
        patch(`${one}/status`, { status: { message: "hello" } }),
        "status.message",
      );
      await stage.call(
        "a pod's image may change",
        patch(one, { spec: { containers: [{ name: "main", image: "app:2" }] } }, STRATEGIC),
        "spec.containers.0.image",
      );
      await stage.call("status of a missing object", patch(`${all}/none/status`, { status: {} }));
    },
  },
];
