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
      await stage.call(
        "one container's image",
        patch(one, containers([{ name: "main", image: "app:2" }]), STRATEGIC),
        TEMPLATE,
        "metadata.generation",
      );
      await stage.call(
        "a container more, with an environment",
        patch(
          one,
          containers([
            {
              name: "side",
              image: "side:1",
              env: [
                { name: "A", value: "1" },
                { name: "B", value: "2" },
              ],
            },
          ]),
          STRATEGIC,
        ),
        TEMPLATE,
      );
      await stage.call(
        "one variable of it",
        patch(one, containers([{ name: "side", env: [{ name: "B", value: "3" }] }]), STRATEGIC),
        TEMPLATE,
      );
      await stage.call(
        "one variable less",
        patch(one, containers([{ name: "side", env: [{ name: "A", $patch: "delete" }] }]), STRATEGIC),
        TEMPLATE,
      );
      await stage.call(
        "the container less",
        patch(one, containers([{ name: "side", $patch: "delete" }]), STRATEGIC),
        TEMPLATE,
        "metadata.generation",
      );
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
