/** Pods and templates. */
import { annotate, change, create, remove, removeWithoutPods, setSpec, setTemplate, ZONES } from "./changes.ts";
import { SETS } from "./installation.ts";
import type { Trouble } from "./trouble.ts";

const NODES = ["node-1", "node-2", "node-3"];

export const POD_TROUBLES: readonly Trouble[] = [
  {
    trouble: "a new image that cannot be pulled",
    make: (at) => setTemplate(at, "registry.invalid/app:2"),
    seenAfter: 75,
    says: {
      status: /ingester +Blocked .*MaxUnavailableReached/,
      explain: /roll out: \w+ {2}MaxUnavailableReached\n.*ImagePullBackOff/,
      page: /MaxUnavailableReached/,
    },
    event: /^MaxUnavailableReached .*ingester-zone-a/m,
    cure: { takes: /undo/ },
    changes: ZONES,
  },
  {
    trouble: "a new template whose pods crash",
    make: (at) => setTemplate(at, "app:2", { annotations: { "sim/crash": "true" } }),
    seenAfter: 45,
    says: { status: /MaxUnavailableReached/, explain: /MaxUnavailableReached\n.*CrashLoopBackOff/ },
    cure: { takes: /undo/ },
    changes: ZONES,
  },
  {
    trouble: "a new template whose pods crash, under a budget that allows fewer than the rollout",
    make: (at) => {
      for (const zone of ZONES) annotate(at, SETS, zone, { "rollout-max-unavailable": "2" });
      setTemplate(at, "app:2", { annotations: { "sim/crash": "true" } });
    },
    seenAfter: 45,
    says: {
      status: /BudgetSpent +pod\/ingester-zone-a-0/,
      explain: /BudgetSpent\n.*ingester-zone-a-0: CrashLoopBackOff; /,
    },
    cure: { takes: /undo/ },
    changes: ZONES,
  },
  {
    trouble: "a new template that was applied by mistake, and whose pods do not become ready",
    make: (at) => setTemplate(at, "app:2", { annotations: { "sim/ready": "false" } }),
    seenAfter: 45,
    says: { status: /MaxUnavailableReached/, explain: /MaxUnavailableReached/ },
    cure: { takes: /undo/ },
    changes: ZONES,
  },
  {
    trouble: "another rollout under way in the group, which does not come to its end",
    make: async (at) => {
      setTemplate(at, "registry.invalid/app:2", { zones: ["ingester-zone-b"] });
      await at.tickFor(45);
      setTemplate(at, "app:3", { zones: ["ingester-zone-a"] });
    },
    seenAfter: 45,
    says: {
      explain: /roll out: \w+ {2}\w+\n.*ingester-zone-b.*ImagePullBackOff/,
      status: /ingester-zone-b/,
    },
    cure: { takes: /undo/ },
    changes: ZONES,
    curedAfter: 90,
  },
  {
    trouble: "one pod in a crash loop",
    make: (at) => annotate(at, "pods", "ingester-zone-a-1", { "sim/crash": "true" }),
    seenAfter: 45,
    object: "pod/ingester-zone-a-1",
    says: { explain: /Blocks its group {2}ZoneNotReady\n.*CrashLoopBackOff/, status: /ZoneNotReady/ },
    event: /^ZoneNotReady /m,
    cure: {},
  },
  {
    trouble: "one pod that is never ready again",
    make: (at) => annotate(at, "pods", "ingester-zone-a-1", { "sim/ready": "false" }),
    seenAfter: 60,
    says: { explain: /ZoneNotReady/, status: /ZoneNotReady/ },
    cure: {},
  },
  {
    trouble: "a pod that fits on no node",
    make: (at) => {
      for (const node of NODES) setSpec(at, "nodes", node, ["unschedulable"], true);
      remove(at, "pods", "ingester-zone-a-1");
    },
    seenAfter: 45,
    says: { explain: /ZoneNotReady/, status: /ZoneNotReady/ },
    cure: {
      text: /no node has room for ingester-zone-a-1, or a volume is missing; see why:/,
      does: (at) => {
        for (const node of NODES) setSpec(at, "nodes", node, ["unschedulable"], false);
      },
    },
  },
  {
    trouble: "a quota that refuses the successor of a pod",
    make: (at) => {
      create(at, "resourcequotas", "ResourceQuota", { metadata: { name: "pods" }, spec: { hard: { pods: "5" } } });
      remove(at, "pods", "ingester-zone-a-1");
    },
    seenAfter: 45,
    says: { explain: /ZoneNotReady/, status: /ZoneNotReady/ },
    cure: {
      text: /ingester-zone-a has 1 of 2 pods; see why:\n.*\n +or if a quota is full, free it:\n +kubectl -n default describe resourcequota/,
      does: (at) => remove(at, "resourcequotas", "pods"),
    },
  },
  {
    trouble: "a template with a claim that does not exist",
    make: (at) => {
      const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "cache" } }];
      for (const zone of ZONES) setSpec(at, SETS, zone, ["template", "spec", "volumes"], volumes);
    },
    seenAfter: 45,
    says: { explain: /MaxUnavailableReached\n.*Unschedulable/, status: /MaxUnavailableReached/ },
    cure: {
      text: /no node has room for ingester-zone-a-0, or a volume is missing; see why:/,
      does: (at) => create(at, "persistentvolumeclaims", "PersistentVolumeClaim", { metadata: { name: "cache" } }),
    },
    curedAfter: 60,
  },
  {
    trouble: "a pod that a finalizer keeps terminating",
    make: (at) => {
      change(at, "pods", "ingester-zone-a-1", (pod) => ({
        ...pod,
        metadata: { ...pod.metadata, finalizers: ["example.com/volume"] },
      }));
      remove(at, "pods", "ingester-zone-a-1");
    },
    seenAfter: 60,
    says: { explain: /ZoneNotReady/, status: /ZoneNotReady/ },
    cure: {
      text: /wait until ingester-zone-a-1 is gone; if that takes long, see which finalizer or lost node keeps it/,
      does: (at) =>
        change(at, "pods", "ingester-zone-a-1", (pod) => ({ ...pod, metadata: { ...pod.metadata, finalizers: [] } })),
    },
  },
  {
    trouble: "a zone that was deleted without its pods, one of which is not ready",
    make: (at) => {
      annotate(at, "pods", "ingester-zone-b-0", { "sim/ready": "false" });
      removeWithoutPods(at, "ingester-zone-b");
      setTemplate(at, "app:2", { zones: ["ingester-zone-a", "ingester-zone-c"] });
    },
    seenAfter: 45,
    says: { status: /ZoneOrphaned/, explain: /ZoneOrphaned\n.*ingester-zone-b is gone/, page: /ZoneOrphaned/ },
    event: /^ZoneOrphaned /m,
    cure: {
      text: /create StatefulSet ingester-zone-b again as it was; .*\n +or if the zone should go, delete all of its pods/,
      does: (at) => {
        for (const pod of ["ingester-zone-b-0", "ingester-zone-b-1"]) remove(at, "pods", pod);
      },
    },
    changes: ["ingester-zone-a", "ingester-zone-b", "ingester-zone-c"],
    curedAfter: 60,
  },
  {
    trouble: "a zone that has lost its label, and has a pod that is not ready",
    make: (at) => {
      annotate(at, "pods", "ingester-zone-b-0", { "sim/ready": "false" });
      change(at, SETS, "ingester-zone-b", ({ metadata: { labels = {}, ...metadata }, ...set }) => {
        const { "rollout-group": _, ...others } = labels;
        return { ...set, metadata: { ...metadata, labels: others } };
      });
      setTemplate(at, "app:2", { zones: ["ingester-zone-a", "ingester-zone-c"] });
    },
    seenAfter: 45,
    says: { status: /ZoneOrphaned/, explain: /ZoneOrphaned\n.*ingester-zone-b is not in the group/ },
    event: /^ZoneOrphaned /m,
    cure: { takes: /label/ },
    changes: ZONES,
    curedAfter: 60,
  },
  {
    trouble: "a zone that no longer works by OnDelete",
    make: (at) => setSpec(at, SETS, "ingester-zone-b", ["updateStrategy"], { type: "RollingUpdate" }),
    says: {
      status: /UpdateStrategyNotOnDelete/,
      explain: /UpdateStrategyNotOnDelete/,
      doctor: /ingester-zone-b: its update strategy is RollingUpdate/,
      page: /UpdateStrategyNotOnDelete/,
    },
    event: /^UpdateStrategyNotOnDelete /m,
    cure: {},
  },
];
