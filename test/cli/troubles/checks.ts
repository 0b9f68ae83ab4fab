/** Gates, PhasedRollouts, and what the cluster lacks of an installation. */
import { listOf } from "../../emulator/objects.ts";
import { failure } from "../../prometheus/scripted.ts";
import { PHASED, SETS } from "../../reconciler/phased/act/stage.ts";
import { GATES } from "../../reconciler/gates/act/stage.ts";
import { annotate, change, create, setSpec, setTemplate, ZONES } from "./changes.ts";
import { CRON_JOB, NAMESPACE, vector, type Installation } from "./installation.ts";
import type { Trouble } from "./trouble.ts";

const ROLES = "roles.rbac.authorization.k8s.io";
const RIGHT = "statefulsets/status";
const URL = "http://prometheus:9090";

/** Between zones, a check every 5 s that passes after one success. */
function createGate(at: Installation, check: object = {}, expr = "errors > 0"): void {
  const one = {
    name: "errors",
    query: { expr, url: URL },
    successWhen: "NoData",
    initialDelaySeconds: 0,
    periodSeconds: 5,
    successThreshold: 1,
    ...check,
  };
  create(at, GATES, "RolloutGate", {
    metadata: { name: "gate" },
    spec: { group: "ingester", when: ["BetweenZones"], onError: "Wait", mode: "Enforce", checks: [one] },
  });
}

/** A new template; the gate holds zone b. */
async function rollOutTo(at: Installation, answer: Installation["hosts"]): Promise<void> {
  at.hosts = answer;
  await at.tickFor(10);
  setTemplate(at, "app:2");
}

/** The StatefulSet `queue` of two pods, managed, and all its pods up to date. */
async function createPhased(at: Installation, check: object = {}, target = "queue"): Promise<void> {
  create(at, SETS, "StatefulSet", {
    metadata: { name: "queue" },
    spec: {
      serviceName: "queue",
      replicas: 2,
      revisionHistoryLimit: 10,
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
      selector: { matchLabels: { name: "queue" } },
      template: { metadata: { labels: { name: "queue" } }, spec: { containers: [{ name: "c", image: "x:1" }] } },
    },
  });
  createGuard(at, "guard", { check, target });
  await at.tickFor(20);
}

const createGuard = (at: Installation, name: string, { check = {}, target = "queue" } = {}): void =>
  create(at, PHASED, "PhasedRollout", {
    metadata: { name },
    spec: {
      targetRef: target,
      check: {
        initialDelaySeconds: 0,
        periodSeconds: 5,
        successThreshold: 1,
        query: { expr: "errors > 0", url: URL, successWhen: "NoData" },
        ...check,
      },
    },
  });

const setImage = (at: Installation, image: string): void =>
  setSpec(at, SETS, "queue", ["template", "spec", "containers"], [{ name: "c", image }]);

export const CHECK_TROUBLES: readonly Trouble[] = [
  {
    trouble: "a gate that waits for errors to go",
    make: async (at) => {
      createGate(at);
      await rollOutTo(at, () => vector(1));
    },
    seenAfter: 45,
    says: {
      status: /GateWaiting/,
      explain: /roll out: Waiting {2}GateWaiting\n.*ingester-zone-b waits for gate gate: check "errors" fails/,
      page: /GateWaiting/,
    },
    event: /(?<![^])(?![^]*^GateWaiting ingester-zone-a)[^]*^GateWaiting ingester-zone-b/m,
    cure: { takes: /bypass/ },
    curedAfter: 60,
  },
  {
    trouble: "a gate that has failed, under a bad template",
    make: async (at) => {
      createGate(at, { failureThreshold: 2 });
      await rollOutTo(at, () => vector(1));
    },
    seenAfter: 40,
    says: { status: /GateFailed/, explain: /roll out: Blocked {2}GateFailed/, page: /GateFailed/ },
    event: /^GateFailed /m,
    cure: { takes: /undo/ },
    changes: ZONES,
    curedAfter: 60,
  },
  {
    trouble: "a gate that has failed, for a reason that is over",
    make: async (at) => {
      createGate(at, { failureThreshold: 2 });
      let answers = 0;
      // The first answer says whether Prometheus understands the expression.
      await rollOutTo(at, () => vector(answers++ < 3 ? 1 : 0));
    },
    seenAfter: 40,
    says: { status: /GateFailed/, explain: /roll out: Blocked {2}GateFailed/ },
    cure: { takes: /retry/ },
    curedAfter: 60,
  },
  {
    trouble: "a gate whose expression is not valid",
    make: async (at) => {
      createGate(at, {}, "errors > (");
      await rollOutTo(at, () => ({ status: 400, body: JSON.stringify(failure("parse error")) }));
    },
    seenAfter: 40,
    says: { status: /GateInvalid/, explain: /roll out: Blocked {2}GateInvalid/, page: /GateInvalid/ },
    event: /^GateInvalid /m,
    cure: { takes: /patch/ },
    curedAfter: 60,
  },
  {
    trouble: "a Prometheus that does not answer a gate",
    make: async (at) => {
      createGate(at);
      await rollOutTo(at, () => undefined);
    },
    seenAfter: 60,
    says: { status: /GateUnreachable/, explain: /roll out: Waiting {2}GateUnreachable/ },
    event: /^GateUnreachable /m,
    cure: { takes: /bypass/ },
    curedAfter: 60,
  },
  {
    trouble: "a gate of a group that does not exist",
    make: (at) => {
      createGate(at);
      setSpec(at, GATES, "gate", ["group"], "ingestr");
    },
    says: { doctor: /rolloutgate\/gate: there is no rollout group ingestr; did you mean ingester\?/ },
    cure: { by: "doctor" },
  },
  {
    trouble: "a PhasedRollout whose checks have failed at a step that may pass",
    make: async (at) => {
      await createPhased(at, { failureThreshold: 2 });
      const isPromoted = (): boolean =>
        "sts.plus/promote-step" in
        (at.stage.emulator.store.get(PHASED, NAMESPACE, "guard")?.metadata.annotations ?? {});
      at.hosts = () => vector(isPromoted() ? 0 : 1);
      setImage(at, "x:2");
    },
    seenAfter: 60,
    object: "sts/queue",
    says: { status: /guard +queue .*ChecksFailed/, explain: /roll out: no {2}ChecksFailed/ },
    event: /^RolloutStalled /m,
    cure: { takes: /promote/ },
    changes: ["queue"],
    curedAfter: 60,
  },
  {
    trouble: "a PhasedRollout that somebody has paused",
    make: async (at) => {
      await createPhased(at);
      annotate(at, PHASED, "guard", { "sts.plus/pause": "true" });
      setImage(at, "x:2");
    },
    seenAfter: 20,
    object: "sts/queue",
    says: { explain: /roll out: no {2}Paused/, status: /guard +queue .*Paused/ },
    cure: {},
    changes: ["queue"],
    curedAfter: 60,
  },
  {
    trouble: "a PhasedRollout with a typo in its target",
    make: async (at) => {
      await createPhased(at, {}, "queu");
    },
    seenAfter: 20,
    object: "phasedrollout/guard",
    says: { explain: /roll out: no {2}ErrorSTSNotFound/ },
    cure: {},
  },
  {
    trouble: "two PhasedRollouts for one StatefulSet",
    make: async (at) => {
      await createPhased(at);
      createGuard(at, "second");
    },
    seenAfter: 20,
    object: "phasedrollout/second",
    says: { explain: /roll out: no {2}ErrorCannotManage/ },
    event: /^CannotManage /m,
    cure: {},
  },
  {
    trouble: "a StatefulSet whose PhasedRollout went without giving it back",
    make: async (at) => {
      await createPhased(at);
      change(at, PHASED, "guard", (one) => ({ ...one, metadata: { ...one.metadata, finalizers: [] } }));
      at.stage.emulator.store.remove(PHASED, NAMESPACE, "guard");
    },
    says: {
      doctor:
        /statefulset\/queue: its annotation sts\.plus\/phasedRollout names PhasedRollout guard, which does not exist/,
    },
    cure: { by: "doctor" },
  },
  {
    trouble: "a reconciler without one of its rights",
    make: (at) => {
      const { store, faults } = at.stage.emulator;
      const isWhole = (): boolean => JSON.stringify(store.get(ROLES, NAMESPACE, CRON_JOB)).includes(RIGHT);
      change(at, ROLES, CRON_JOB, (role) => ({
        ...role,
        rules: listOf(role["rules"]).filter((rule) => !JSON.stringify(rule).includes(RIGHT)),
      }));
      const effect = { kind: "forbidden", user: `system:serviceaccount:${NAMESPACE}:zonewise-reconciler` } as const;
      const fault = { verb: "patch", resource: SETS, subresource: "status", effect } as const;
      const heal = faults.inject(fault);
      store.subscribe(({ resource }) => void (resource === ROLES && isWhole() && heal()));
      setTemplate(at, "app:2");
    },
    seenAfter: 45,
    says: {
      status: /ReconcileFailed/,
      explain: /ReconcileFailed\n.*forbidden/,
    },
    event: /^ReconcileFailed .*forbidden/m,
    cure: {},
    curedAfter: 90,
  },
  {
    trouble: "no definition of RolloutGroups",
    make: ({ stage }) =>
      stage.emulator.store.remove(
        "customresourcedefinitions.apiextensions.k8s.io",
        undefined,
        "rolloutgroups.zonewise.dev",
      ),
    says: {
      doctor: /RolloutGroup\.zonewise\.dev: CRD not installed/,
      page: /The cluster knows no RolloutGroup/,
    },
    cure: { by: "doctor" },
    curedAfter: 400,
  },
];
