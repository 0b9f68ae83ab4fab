/** Requests that no program of random calls makes: what is wrong with them is in their form. */
import { at, configMap, get, JSON_PATCH, patch, post } from "../requests.ts";
import type { Scenario } from "../stage.ts";

export const objects: readonly Scenario[] = [
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
];
