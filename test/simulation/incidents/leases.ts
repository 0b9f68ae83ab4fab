/** Clocks that are set, API servers that differ or answer wrongly, and RolloutGroups and Leases that people change. */
import { drawCertificate, OTHER_INJECTOR } from "../certificates/trust.ts";
import { dig, type Draft, isTrue, textOf } from "../../emulator/objects.ts";
import { GROUP, LEASES, NAMESPACE, OTHER_GROUP, ROLLOUT_GROUPS } from "../names.ts";
import {
  type Action,
  disturbFor,
  insist,
  isList,
  pause,
  type People,
  recreate,
  setOf,
  SETS,
  until as waitUntil,
} from "../person.ts";
import type { Process } from "../process.ts";
import { type Shape, zoneObject } from "../shape.ts";
import { areZonesSettled } from "../oracles/stability.ts";
import type { Area } from "./incident.ts";

const LEASE = "zonewise-reconciler";
export const LEASE_PATH = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${LEASE}`;
export const GROUPS_PATH = `/apis/zonewise.dev/v1/namespaces/${NAMESPACE}/rolloutgroups`;
export const OTHERS_PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
export const OTHER_ZONES = ["a", "b"].map((zone) => `${OTHER_GROUP}-zone-${zone}`);
const SET_MS = 30_000;
const STEP_MS = 100;
/** The oracles take no lost call for a reason so long after the last one. */
export const QUIET_MS = 160_000;

const leaseOf = ({ world }: People) => world.store.get(LEASES, NAMESPACE, LEASE);
const renewedBy = (people: People): string => textOf(dig(leaseOf(people), "spec", "holderIdentity")) ?? "";
const runs = ({ world }: People): readonly Process[] =>
  world.processes().filter(({ name }) => name.startsWith("reconciler-"));

const until = (people: People, holds: () => boolean, ms: number, stepMs = STEP_MS): Promise<boolean> =>
  waitUntil(people, holds, { ms, stepMs });

/**
 * The holder stands still just after a renewal, before which `prepare` is called again and again, while somebody starts
 * another run. Resolves with that.
 */
async function contend(people: People, prepare: (holder: Process) => void = () => {}): Promise<Process | undefined> {
  const holder = (): Process | undefined => runs(people).find(({ name }) => renewedBy(people).startsWith(`${name}_`));
  const version = (): string | undefined => leaseOf(people)?.metadata.resourceVersion;
  const renewal = async (ms: number, act: () => void): Promise<boolean> => {
    const before = version();
    return await until(people, () => version() !== before || (act(), false), ms, 2);
  };
  if (!(await until(people, () => holder() !== undefined, 150_000))) return undefined;
  await renewal(10_000, () => {});
  // The next renewal leaves it 5 s after the answer to this one.
  await pause(people, 4996);
  const found = holder();
  if (!found || !(await renewal(50, () => prepare(found)))) return undefined;
  found.freeze(14_000);
  people.world.startRun();
  return runs(people).at(-1);
}

/** A zone of the second group, which nobody scales. */
export function otherZone(shape: Shape, name: string): Draft {
  const bare = { followers: false, mirrored: undefined, prepared: false, secondsBetween: 0, nodes: undefined };
  const text = JSON.stringify(zoneObject({ ...shape, ...bare, replicas: 1 }, name));
  return JSON.parse(text.replaceAll(`"${GROUP}"`, `"${OTHER_GROUP}"`)) as Draft;
}

/** The second group goes, with what is told of it. */
export const removeOtherGroup = ({ world }: People): Promise<unknown> =>
  Promise.all([
    ...OTHER_ZONES.map((zone) => world.ask("human", "DELETE", `${SETS}/${zone}`)),
    world.ask("human", "DELETE", `${GROUPS_PATH}/${OTHER_GROUP}`),
  ]);

/** A configuration whose bundle somebody else maintains; no request goes to its webhook. */
export const foreignConfiguration = (caBundle: string): Draft => ({
  apiVersion: "admissionregistration.k8s.io/v1",
  kind: "ValidatingWebhookConfiguration",
  metadata: {
    name: "of-another-injector",
    labels: { "grafana.com/namespace": NAMESPACE, "grafana.com/inject-rollout-operator-ca": "true" },
    annotations: { [OTHER_INJECTOR]: `${NAMESPACE}/serving` },
  },
  webhooks: [
    {
      name: "widgets.example.com",
      clientConfig: { url: "https://widgets.example.com/", caBundle },
      rules: [{ apiGroups: ["example.com"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["widgets"] }],
      admissionReviewVersions: ["v1"],
      sideEffects: "None",
    },
  ],
});

/** The spec of a zone changes in a field that makes no pods. */
export function changeRetention(people: People, zone = people.draw.of(people.shape.zones)): Promise<void> {
  const policy = (of: string): unknown =>
    dig(
      people.world.store.get("statefulsets.apps", NAMESPACE, zone),
      "spec",
      "persistentVolumeClaimRetentionPolicy",
      of,
    );
  const whenScaled = policy("whenScaled") === "Delete" ? "Retain" : "Delete";
  return insist(people, `${SETS}/${zone}`, {
    spec: { persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled } },
  });
}

/** The spec of the RolloutGroup changes. */
export const editGroup = (people: People): Promise<void> =>
  insist(people, `${GROUPS_PATH}/${GROUP}`, {
    spec: { progressDeadlineSeconds: people.draw.between(600, 3600) },
  });

/** All pods have the template of their zone, and the group is not ready yet. */
function isAlmostDone(people: People): boolean {
  const { store } = people.world;
  const isUpdated = (zone: string): boolean => {
    const revision = dig(setOf(people, zone), "status", "updateRevision");
    const pods = store.list("pods", NAMESPACE).filter(({ metadata }) => metadata.labels?.["name"] === zone);
    return pods.every(({ metadata }) => metadata.labels?.["controller-revision-hash"] === revision);
  };
  return (
    people.shape.zones.every(isUpdated) && store.list(ROLLOUT_GROUPS, NAMESPACE).some((one) => !isTrue(one, "Ready"))
  );
}

/** Somebody deletes the Lease that nobody has. */
export const loseLease: Action = async (people) => {
  if (await until(people, () => leaseOf(people) !== undefined && renewedBy(people) === "", 70_000))
    await people.world.ask("human", "DELETE", LEASE_PATH);
};

const INCIDENTS: Readonly<Record<string, Action>> = {
  /** The holder's clock is set back as it renews its Lease. */
  clockSetBack: async (people) => {
    const undo: (() => void)[] = [];
    await contend(people, (holder) => {
      holder.setClock(-SET_MS);
      undo.push(() => holder.setClock(SET_MS));
    });
    await pause(people, 20_000);
    for (const back of undo) back();
  },
  /** The clock of a run that waits is set forward while an answer arrives. */
  clockSetForward: async (people) => {
    const waiting = await contend(people);
    if (!waiting) return;
    const slow = disturbFor(people, 14_000, (actor, { path }) =>
      actor === waiting.name && path.includes(LEASE) ? { bodyLateMs: 1500 } : undefined,
    );
    await pause(people, people.draw.between(8000, 11_000));
    waiting.setClock(SET_MS);
    await slow;
    waiting.setClock(-SET_MS);
  },
  /** A run that waits is answered by two API servers. */
  serversDiffer: async (people) => {
    const waiting = await contend(people);
    let calls = 0;
    await disturbFor(people, 20_000, (actor, { path }) =>
      actor === waiting?.name && path.includes(LEASE) ? { aheadMs: calls++ % 2 === 0 ? SET_MS : 0 } : undefined,
    );
  },
  editGroup: async (people) => {
    const { draw, world } = people;
    await until(people, () => world.store.get(ROLLOUT_GROUPS, NAMESPACE, GROUP) !== undefined, 60_000);
    for (let edits = draw.between(2, 6); edits > 0; edits--) {
      await editGroup(people);
      await pause(people, draw.between(1, draw.of([20, 500, 6000])));
    }
  },
  /** Before its zones are. */
  makeGroup: ({ world, draw }) =>
    world.ask("human", "POST", GROUPS_PATH, {
      apiVersion: "zonewise.dev/v1",
      kind: "RolloutGroup",
      metadata: { name: draw.of([OTHER_GROUP, "store-gateway"]), namespace: NAMESPACE },
      spec: { progressDeadlineSeconds: 900 },
    }),
  /** A second group is made, updated, and deleted with what is told of it; it comes again while the same run goes on. */
  otherGroup: async (people) => {
    const { world, shape, draw } = people;
    const make = (zone: string): Promise<unknown> => recreate(people, SETS, otherZone(shape, zone));
    await Promise.all(OTHER_ZONES.map(make));
    for (let i = 0; i < 2; i++) {
      await pause(people, draw.between(10_000, 40_000));
      const containers = [{ name: "main", image: `app:${draw.between(1, 99)}` }];
      for (const zone of OTHER_ZONES)
        await insist(people, `${SETS}/${zone}`, { spec: { template: { spec: { containers } } } });
    }
    await pause(people, 70_000);
    await until(people, () => world.processes().length > 0 && renewedBy(people) !== "", 60_000);
    await removeOtherGroup(people);
    await pause(people, draw.between(6000, 14_000));
    await Promise.all(OTHER_ZONES.map(make));
  },
  /** Lists of pods fail, one of two of them. */
  podsUnread: (people) => {
    let lists = 0;
    return disturbFor(people, people.draw.between(20_000, 60_000), (_, sent) =>
      isList(sent, "pods") && lists++ % 2 === 0 ? { isRefused: true } : undefined,
    );
  },
  otherInjector: ({ world }) =>
    world.ask("human", "POST", OTHERS_PATH, foreignConfiguration(Buffer.from("of cert-manager").toString("base64"))),
  loseLease,
  /** What is to be mirrored cannot be read as the last pods of a rollout come up. */
  templateUnread: async (people) => {
    if (!(await until(people, () => isAlmostDone(people), 120_000))) return;
    await disturbFor(people, 40_000, (_, { method, path }) =>
      method === "GET" && /replicatemplates/.test(path) ? { isRefused: true } : undefined,
    );
  },
  /** The statuses of zones lag as the last pods of a rollout come up. */
  statusesLag: async (people) => {
    if (await until(people, () => isAlmostDone(people), 120_000)) people.world.stall("statefulSets", 12_000);
  },
  /** Writes take effect, and the API server says that they may not have. */
  unsaid: (people) => {
    const { draw } = people;
    const unsaid = draw.of([
      "etcdserver: request timed out",
      'Internal error occurred: etcdserver: request timed out, after: failed calling webhook "audit.example.com"',
    ]);
    const one = draw.of([2, 3, 5]);
    let writes = 0;
    return disturbFor(people, draw.between(20_000, 90_000), (_, { method, path }) =>
      method !== "GET" && !path.includes("/leases") && writes++ % one === 0 ? { unsaid } : undefined,
    );
  },
  /** A proxy ends long answers too early, and says nothing of it. */
  shortLists: (people) => {
    let lists = 0;
    return disturbFor(people, people.draw.between(5000, 30_000), (_, sent) =>
      isList(sent, "pods") && lists++ % 2 === 0 ? { isShort: true } : undefined,
    );
  },
  /** Pods send whoever prepares them to another pod, while a zone is to shrink. */
  redirected: async (people) => {
    const { world, draw, shape } = people;
    const [first = ""] = shape.zones;
    const other = `${draw.of(shape.zones)}-0.pod`;
    const disturbed = disturbFor(people, draw.between(20_000, 90_000), (_, { host, path }) =>
      path.includes("prepare") && !host.startsWith(other) ? { location: `http://${other}${path}` } : undefined,
    );
    const spec = { replicas: Math.max(0, Number(dig(setOf(people, first), "spec", "replicas")) - 1) };
    await world.ask("human", "PATCH", `${SETS}/${first}/scale`, { spec });
    await disturbed;
  },
};

export const LEASES_AREA: Area = {
  shape: ({ skewMs, certificate }, draw) => ({
    skewMs: Math.max(skewMs, SET_MS),
    certificate: certificate ?? (draw.chance(0.3) ? drawCertificate(draw) : undefined),
  }),
  incidents: INCIDENTS,
  /** Once all is settled, and long quiet, a field of a zone changes that makes no pods, and one of the group. */
  async setRight(people) {
    const { shape, world } = people;
    await until(people, () => areZonesSettled(world.store, shape.zones), 240_000, 1000);
    await pause(people, QUIET_MS);
    await changeRetention(people);
    await pause(people, 5000);
    await insist(people, `${GROUPS_PATH}/${GROUP}`, { spec: { progressDeadlineSeconds: 1200 } });
  },
};
