/** Evictions under a PodDisruptionBudget, and garbage collection. */
import { dig } from "../../../emulator/objects.ts";
import { at, configMap, del, get, patch, pod, post, statefulSet } from "../requests.ts";
import type { Scenario, Stage } from "../stage.ts";

const budget = (name: string, spec: object): object => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name },
  spec,
});
const eviction = (name: string, deleteOptions?: object): object => ({
  apiVersion: "policy/v1",
  kind: "Eviction",
  metadata: { name },
  ...(deleteOptions && { deleteOptions }),
});

export const evictions: readonly Scenario[] = [
  {
    name: "an eviction is checked against the budget",
    run: async (stage) => {
      const pods = at(stage.namespace, "pods");
      const budgets = at(stage.namespace, "poddisruptionbudgets");
      const watching = await stage.watch(`${budgets}?watch=1`);
      const allowed = (count: number) =>
        watching.until((events) => {
          const last = events.findLast(({ object }) => dig(object, "metadata", "name") === "b");
          return (
            dig(last?.object, "status", "disruptionsAllowed") === count &&
            dig(last?.object, "status", "expectedPods") === 3
          );
        });
      await stage.send(post(budgets, budget("b", { maxUnavailable: 1, selector: { matchLabels: { app: "z" } } })));
      await stage.send(
        post(
          at(stage.namespace, "statefulsets"),
          statefulSet("z", {
            replicas: 3,
            spec: { podManagementPolicy: "Parallel", updateStrategy: { type: "OnDelete" } },
          }),
        ),
      );
      await allowed(1);
      const counts = ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods", "observedGeneration"];
      await stage.call("the budget", get(`${budgets}/b`), ...counts.map((count) => `status.${count}`));
      const hold = (finalizers: string[] | null) => stage.send(patch(`${pods}/z-0`, { metadata: { finalizers } }));
      await hold(["example.com/hold"]);
      await stage.call("in a dry run", post(`${pods}/z-0/eviction?dryRun=All`, eviction("z-0")), ".");
      await stage.call("the first", post(`${pods}/z-0/eviction`, eviction("z-0")), ".");
      await watching.until((events) => dig(events.at(-1)?.object, "status", "currentHealthy") === 2);
      await stage.call("the second is one too many", post(`${pods}/z-1/eviction`, eviction("z-1")));
      await hold(null);
      await stage.call("of a missing pod", post(`${pods}/none/eviction`, eviction("none")));
      await allowed(1);
      await stage.call(
        "with the wrong uid",
        post(
          `${pods}/z-0/eviction`,
          eviction("z-0", { preconditions: { uid: "11111111-2222-3333-4444-555555555555" } }),
        ),
      );
      await stage.send(post(budgets, budget("c", { minAvailable: "50%", selector: { matchLabels: { app: "z" } } })));
      await watching.until((events) =>
        events.some(
          ({ object }) => dig(object, "metadata", "name") === "c" && dig(object, "status", "expectedPods") === 3,
        ),
      );
      await stage.call(
        "half of them, rounded up",
        get(`${budgets}/c`),
        "status.desiredHealthy",
        "status.disruptionsAllowed",
        "status.expectedPods",
        "status.currentHealthy",
      );
      await stage.call("two budgets on one pod", post(`${pods}/z-1/eviction`, eviction("z-1")));
    },
  },
  {
    name: "a pod that is not ready, or has no budget, is evicted",
    run: async (stage) => {
      const pods = at(stage.namespace, "pods");
      const watching = await stage.watch(`${pods}?watch=1`);
      await stage.send(post(pods, pod("free")));
      await watching.until((events) => dig(events.at(-1)?.object, "status", "phase") === "Running");
      await stage.call("no budget", post(`${pods}/free/eviction`, eviction("free")), "status");
      await watching.until((events) => events.at(-1)?.type === "DELETED");
      stage.record(
        "its grace periods",
        watching.events
          .slice(-3)
          .map(({ type, object }) => [type, dig(object, "metadata", "deletionGracePeriodSeconds")]),
      );
    },
  },
];

export const owners: readonly Scenario[] = [
  ...(["Background", "Foreground", "Orphan"] as const).map((policy) => ({
    name: `a dependent follows its owner: ${policy}`,
    run: async (stage: Stage) => {
      const all = at(stage.namespace, "configmaps");
      const watching = await stage.watch(`${all}?watch=1&labelSelector=app`);
      const owner = await stage.send(post(all, configMap("owner", {}, { labels: { app: "x" } })));
      const ownerReferences = [
        {
          apiVersion: "v1",
          kind: "ConfigMap",
          name: "owner",
          uid: dig(owner.body, "metadata", "uid"),
          blockOwnerDeletion: true,
        },
      ];
      await stage.send(post(all, configMap("owned", {}, { labels: { app: "x" }, ownerReferences })));
      await stage.call(
        "delete the owner",
        del(`${all}/owner`, { propagationPolicy: policy }),
        "status",
        "metadata.finalizers",
        "metadata.deletionGracePeriodSeconds",
      );
      const owned = ({ type, object }: { type: string; object: object }): boolean =>
        dig(object, "metadata", "name") === "owned" && (policy === "Orphan" ? type === "MODIFIED" : type === "DELETED");
      await watching.until(
        (events) =>
          events.some(owned) &&
          events.some(({ type, object }) => type === "DELETED" && dig(object, "metadata", "name") === "owner"),
      );
      stage.record(
        "the events",
        watching.events.map(({ type, object }) => `${type} ${String(dig(object, "metadata", "name"))}`),
      );
      if (policy === "Orphan") await stage.call("the orphan", get(`${all}/owned`), "metadata.ownerReferences");
    },
  })),
  {
    name: "an object whose owner never existed is deleted",
    run: async (stage) => {
      const all = at(stage.namespace, "configmaps");
      const watching = await stage.watch(`${all}?watch=1&labelSelector=app`);
      const ownerReferences = [
        { apiVersion: "v1", kind: "ConfigMap", name: "never", uid: "11111111-2222-3333-4444-555555555555" },
      ];
      await stage.call(
        "create",
        post(all, configMap("owned", {}, { labels: { app: "x" }, ownerReferences })),
        "metadata.ownerReferences",
      );
      await watching.until((events) => events.at(-1)?.type === "DELETED");
      stage.record(
        "the events",
        watching.events.map(({ type }) => type),
      );
    },
  },
];
