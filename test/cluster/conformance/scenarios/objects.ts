/** Creating, reading, replacing and deleting single objects. */
import { dig } from "../../../emulator/objects.ts";
import { at, configMap, del, get, JSON_PATCH, patch, pod, post, put } from "../requests.ts";
import type { Scenario } from "../stage.ts";

export const objects: readonly Scenario[] = [
  {
    name: "an object is created, read, replaced and deleted",
    run: async (stage) => {
      const all = at(stage.namespace, "configmaps");
      const one = `${all}/a`;
      const created = await stage.call("create", post(all, configMap("a", { k: "1" }, { labels: { l: "1" } })), ".");
      await stage.call("create again", post(all, configMap("a")));
      await stage.call("read", get(one), ".");
      await stage.call(
        "replace",
        put(one, configMap("a", { k: "2" })),
        "data",
        "metadata.labels",
        "metadata.generation",
      );
      await stage.call("replace on an old version", put(one, created.body));
      await stage.refused(
        "replace with another uid",
        put(one, configMap("a", {}, { uid: "11111111-2222-3333-4444-555555555555" })),
      );
      await stage.call("replace under another name", put(one, configMap("b")));
      await stage.call("replace a missing object", put(`${all}/none`, configMap("none")));
      const before = await stage.send(get(one));
      const same = await stage.call("replace by the same", put(one, before.body), "data");
      stage.record("the same keeps its version", versionOf(before.body) === versionOf(same.body));
      await stage.call(
        "delete with the wrong uid",
        del(one, { preconditions: { uid: "11111111-2222-3333-4444-555555555555" } }),
      );
      await stage.call(
        "delete with an old version",
        del(one, { preconditions: { resourceVersion: versionOf(created.body) } }),
      );
      await stage.call("delete in a dry run", del(`${one}?dryRun=All`), ".");
      await stage.call(
        "delete",
        del(one, {
          preconditions: { uid: dig(before.body, "metadata", "uid"), resourceVersion: versionOf(before.body) },
        }),
        ".",
      );
      await stage.call("read a deleted object", get(one));
      await stage.call("delete a deleted object", del(one));
      await stage.call("patch a deleted object", patch(one, { data: {} }));
    },
  },
  {
    name: "names are generated, and dry runs store nothing",
    run: async (stage) => {
      const all = at(stage.namespace, "configmaps");
      const generated = await stage.call(
        "create with generateName",
        post(all, { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "gen-" } }),
      );
      const name = String(dig(generated.body, "metadata", "name"));
      stage.record("shape of the generated name", /^gen-[a-z0-9]{5}$/.test(name));
      await stage.call(
        "create in a dry run",
        post(`${all}?dryRun=All`, configMap("dry", { k: "1" })),
        "data",
        "metadata.name",
      );
      await stage.call("nothing was created", get(`${all}/dry`));
      await stage.send(post(all, configMap("wet", { k: "1" })));
      await stage.call("patch in a dry run", patch(`${all}/wet?dryRun=All`, { data: { k: "2" } }), "data");
      await stage.call("nothing was patched", get(`${all}/wet`), "data");
    },
  },
  {
    name: "invalid requests are refused with Kubernetes' messages",
    run: async (stage) => {
      const all = at(stage.namespace, "configmaps");
      await stage.call("no name", post(all, { apiVersion: "v1", kind: "ConfigMap" }));
      await stage.call("another namespace", post(all, configMap("a", {}, { namespace: "elsewhere" })));
      await stage.refused("another kind", post(all, { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } }));
      await stage.refused("broken JSON", { method: "POST", path: all, body: "{" });
      await stage.refused("an invalid content type", { method: "POST", path: all, body: "x", type: "text/plain" });
      await stage.refused("an invalid patch type", {
        method: "PATCH",
        path: `${all}/a`,
        body: {},
        type: "application/json",
      });
      await stage.call("a method that is not allowed", { method: "POST", path: `${all}/a`, body: configMap("a") });
      await stage.call("a missing resource", get(at(stage.namespace, "nonsense")));
      await stage.call("a missing group", get("/apis/nonsense.example.com/v1/things"));
      await stage.call("a missing namespace", post(at("conf-nowhere", "configmaps"), configMap("a")));
      await stage.refused("an unknown label operator", get(`${all}?labelSelector=a~b`));
      await stage.refused("an unknown field selector", get(`${all}?fieldSelector=data.k%3D1`));
      await stage.send(post(all, configMap("a")));
      await stage.call(
        "a JSON patch whose test fails",
        patch(`${all}/a`, [{ op: "test", path: "/data/k", value: "1" }], JSON_PATCH),
      );
      await stage.call(
        "a JSON patch of nothing",
        patch(`${all}/a`, [{ op: "remove", path: "/data/none" }], JSON_PATCH),
      );
    },
  },
  {
    name: "a pod's deletion takes its grace period, and its finalizers",
    run: async (stage) => {
      const all = at(stage.namespace, "pods");
      const watching = await stage.watch(`${all}?watch=1`);
      await stage.call(
        "create",
        post(
          all,
          pod("graceful", { finalizers: ["example.com/hold"], annotations: { "sim/exit-after-ms": "3600000" } }),
        ),
        "status",
        "spec.terminationGracePeriodSeconds",
        "metadata.generation",
      );
      await watching.until((events) => events.some(({ object }) => dig(object, "status", "phase") === "Running"));
      await stage.call(
        "delete",
        del(`${all}/graceful`),
        "metadata.deletionGracePeriodSeconds",
        "metadata.deletionTimestamp",
        "metadata.finalizers",
      );
      await stage.call("delete again", del(`${all}/graceful`), "metadata.deletionGracePeriodSeconds");
      await stage.call(
        "delete at once",
        del(`${all}/graceful`, { gracePeriodSeconds: 0 }),
        "metadata.deletionGracePeriodSeconds",
      );
      await stage.call(
        "still held by the finalizer",
        get(`${all}/graceful`),
        "metadata.finalizers",
        "metadata.deletionGracePeriodSeconds",
      );
      await stage.call(
        "let go",
        patch(`${all}/graceful`, { metadata: { finalizers: null } }),
        "metadata.finalizers",
        "metadata.deletionGracePeriodSeconds",
      );
      await watching.until((events) => events.at(-1)?.type === "DELETED");
      await stage.call("gone", get(`${all}/graceful`));
      await stage.send(post(all, pod("forced")));
      await stage.call(
        "delete by force",
        del(`${all}/forced`, { gracePeriodSeconds: 0 }),
        "metadata.deletionGracePeriodSeconds",
      );
      await stage.call("gone at once", get(`${all}/forced`));
    },
  },
];

function versionOf(body: unknown): unknown {
  return dig(body, "metadata", "resourceVersion");
}
