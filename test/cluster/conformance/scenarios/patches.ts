/** All patch types, and the status and scale subresources. */
import { dig } from "../../../emulator/objects.ts";
import { at, configMap, get, JSON_PATCH, patch, pod, post, put, statefulSet, STRATEGIC } from "../requests.ts";
import type { Scenario } from "../stage.ts";

const TEMPLATE = "spec.template.spec.containers";

export const patches: readonly Scenario[] = [
  {
    name: "a merge patch sets and removes, a JSON patch applies its operations",
    run: async (stage) => {
      const one = at(stage.namespace, "configmaps", "a");
      await stage.send(
        post(at(stage.namespace, "configmaps"), configMap("a", { k: "1", l: "1" }, { labels: { app: "x" } })),
      );
      await stage.call("merge", patch(one, { data: { k: "2", l: null, m: "1" } }), "data");
      const before = await stage.send(get(one));
      const version = dig(before.body, "metadata", "resourceVersion");
      const same = await stage.call("merge of nothing new", patch(one, { data: { k: "2" } }), "data");
      stage.record("nothing new keeps the version", dig(same.body, "metadata", "resourceVersion") === version);
      await stage.call("merge on an old version", patch(one, { metadata: { resourceVersion: "1" }, data: { k: "3" } }));
      await stage.call(
        "merge of nothing new on an old version",
        patch(one, { metadata: { resourceVersion: "1" }, data: { k: "2" } }),
        "data",
      );
      await stage.call(
        "merge on the right version",
        patch(one, { metadata: { resourceVersion: version }, data: { k: "3" } }),
        "data",
      );
      await stage.call(
        "merge with another uid",
        patch(one, { metadata: { uid: "11111111-2222-3333-4444-555555555555" } }),
      );
      await stage.call("merge with another name", patch(one, { metadata: { name: "b" } }));
      const steps = [
        { op: "test", path: "/data/k", value: "3" },
        { op: "add", path: "/metadata/annotations", value: { "example.com/a": "1" } },
        { op: "replace", path: "/data/k", value: "4" },
        { op: "copy", from: "/data/k", path: "/data/n" },
        { op: "move", from: "/data/m", path: "/data/o" },
      ];
      await stage.call("JSON patch", patch(one, steps, JSON_PATCH), "data", "metadata.annotations");
      await stage.call(
        "an escaped path",
        patch(one, [{ op: "remove", path: "/metadata/annotations/example.com~1a" }], JSON_PATCH),
        "metadata.annotations",
      );
      await stage.call(
        "strategic merge",
        patch(one, { metadata: { labels: { app: null, is: "new" } } }, STRATEGIC),
        "metadata.labels",
      );
      await stage.call("strategic replace", patch(one, { data: { $patch: "replace", only: "1" } }, STRATEGIC), "data");
    },
  },
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
  {
    name: "a status write without a change keeps the version, with any resourceVersion",
    run: async (stage) => {
      const all = at(stage.namespace, "statefulsets");
      const one = `${all}/z`;
      const watching = await stage.watch(`${all}?watch=1`);
      await stage.send(post(all, statefulSet("z", { replicas: 0 })));
      await watching.until((events) => dig(events.at(-1)?.object, "status", "observedGeneration") === 1);
      const condition = (status: string, metadata: object = {}): object => ({
        metadata,
        status: { conditions: [{ type: "example.com/a", status }] },
      });
      const written = await stage.call(
        "something new",
        patch(`${one}/status`, condition("True")),
        "status",
        "metadata.generation",
      );
      const version = dig(written.body, "metadata", "resourceVersion");
      const same = await stage.call(
        "nothing new on the right version",
        patch(`${one}/status`, condition("True", { resourceVersion: version })),
      );
      stage.record("it keeps the version", dig(same.body, "metadata", "resourceVersion") === version);
      await stage.call(
        "nothing new on an old version",
        patch(`${one}/status`, condition("True", { resourceVersion: "1" })),
      );
      await stage.call(
        "something new on an old version",
        patch(`${one}/status`, condition("False", { resourceVersion: "1" })),
      );
      await stage.call(
        "nothing new with another uid",
        patch(`${one}/status`, condition("True", { uid: "11111111-2222-3333-4444-555555555555" })),
      );
      const replaced = await stage.call("replaced by the same", put(`${one}/status`, written.body), "status");
      stage.record("that keeps the version too", dig(replaced.body, "metadata", "resourceVersion") === version);
    },
  },
  {
    name: "scale is a view of the StatefulSet",
    run: async (stage) => {
      const one = at(stage.namespace, "statefulsets", "z");
      const watching = await stage.watch(`${at(stage.namespace, "statefulsets")}?watch=1`);
      await stage.send(post(at(stage.namespace, "statefulsets"), statefulSet("z", { replicas: 1 })));
      await watching.until((events) => dig(events.at(-1)?.object, "status", "readyReplicas") === 1);
      const scale = await stage.call("read", get(`${one}/scale`), ".");
      await stage.call("replace", put(`${one}/scale`, { ...(scale.body as object), spec: { replicas: 0 } }), "spec");
      await stage.call(
        "replace on an old version",
        put(`${one}/scale`, { ...(scale.body as object), spec: { replicas: 3 } }),
      );
      await watching.until((events) => dig(events.at(-1)?.object, "status", "replicas") === 0);
      await stage.call("patch", patch(`${one}/scale`, { spec: { replicas: 0 } }), "spec", "status");
      await stage.refused("negative", patch(`${one}/scale`, { spec: { replicas: -1 } }));
      await stage.call("of a missing pod", get(at(stage.namespace, "statefulsets", "none", "scale")));
      await stage.call("of a resource without one", get(at(stage.namespace, "configmaps", "none", "scale")));
    },
  },
];
