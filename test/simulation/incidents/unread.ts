/**
 * What nobody can read: notes on Leases, bundles, specs and statuses that somebody has written otherwise, answers of pods,
 * tokens; and nodes that are being deleted, or whose policy is to be made for the first time.
 */
import { type Draft, dig, fieldsOf, put, textOf } from "../../emulator/objects.ts";
import { BUDGETS_PATH, mendBudget } from "../budgets.ts";
import { CONFIGURATIONS, OTHER_INJECTOR } from "../certificates/trust.ts";
import { manifestOf, pathOf } from "../certificates/people.ts";
import { drawPhased, PHASED, PHASED_ROLLOUTS, phasedObject } from "../checks/objects.ts";
import { phasedPath } from "../checks/people.ts";
import { BUDGET, BUDGETS, LEASES, NAMESPACE, VALIDATING } from "../names.ts";
import {
  anyHost,
  fleetOf,
  hostThat,
  nodePath,
  PASSES_MS,
  phaseOf,
  shadowOf,
  shadowPath,
  statusOf,
} from "../nodes/moments.ts";
import type { NodeHost } from "../nodes/node-host.ts";
import { readNote } from "../oracles/stored.ts";
import { applyPolicy, POLICIES_PATH, policyPath } from "../nodes/people.ts";
import { POLICIES, POLICY, SHADOWS } from "../nodes/shape.ts";
import {
  type Action,
  drain,
  evict,
  insist,
  isReconciler,
  pause,
  type People,
  podsIn,
  setOf,
  SETS,
  until,
} from "../person.ts";
import type { Shape } from "../shape.ts";
import type { Area } from "./incident.ts";
import { foreignConfiguration, loseLease, OTHERS_PATH } from "./leases.ts";
import { withPhased } from "./phased.ts";
import { afterwards, newImage, shrink, shrunk, withPods } from "./shrinking.ts";

const KEPT = "sim/kept";
const TROUBLED_MS = 240_000;
/** What a manifest has for a bundle that somebody else is to fill in. */
const PLACEHOLDER = Buffer.from("\n").toString("base64");
/** After which what is noted counts no more, whatever the clock says of the process that has noted it. */
const FORGOTTEN_MS = 250_000;
const MOST_MS = 400_000;

/** Writes a note of a Lease otherwise, once nothing in it counts any more. */
async function spoilNote(people: People, lease: () => string | undefined, note: string): Promise<boolean> {
  const { world, schedule } = people;
  const found = () => world.store.get(LEASES, NAMESPACE, lease() ?? "");
  const isOver = (entry: unknown): boolean => schedule.now() - Date.parse(String(dig(entry, "time"))) > FORGOTTEN_MS;
  const isForgotten = (): boolean => {
    const text = textOf(dig(found(), "metadata", "annotations", note));
    return text !== undefined && Object.values(fieldsOf(readNote(text))).every(isOver);
  };
  if (!(await until(people, isForgotten, { ms: MOST_MS, stepMs: 1000 }))) return false;
  const object = found();
  if (object) world.store.update(LEASES, put(object, ["metadata", "annotations", note], "none"));
  return true;
}

/** A host that waits for its turn while another one is updated. */
const waiting = (people: People): Promise<NodeHost | undefined> =>
  hostThat(people, (host) => {
    const { current_version: current, target_version: target } = statusOf(people, host);
    const isBusy = fleetOf(people).hosts.some((other) => phaseOf(people, other) !== undefined);
    return isBusy && phaseOf(people, host) === undefined && current !== target;
  });

/** As somebody else maintains it; no request goes to its webhooks, one of which would judge evictions elsewhere. */
function notInjected(): Draft {
  const foreign = foreignConfiguration(PLACEHOLDER);
  const [first = {}] = foreign["webhooks"] as readonly object[];
  const service = { namespace: NAMESPACE, name: "rollout-operator", path: VALIDATING, port: 443 };
  const evictions = {
    ...first,
    name: "evictions.example.com",
    clientConfig: { service, caBundle: PLACEHOLDER },
    rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/eviction"] }],
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "elsewhere" } },
  };
  return { ...foreign, webhooks: [first, evictions] };
}

export const UNREAD_ACTS = {
  /** The note of the downscales that are admitted, before the next one. */
  admitted: async (people) => {
    const { world, shape } = people;
    const zone = shape.zones[0] ?? "";
    await shrink(people, zone);
    const names = (): readonly string[] => world.store.list(LEASES, NAMESPACE).map(({ metadata }) => metadata.name);
    const lease = (): string | undefined => names().find((name) => name.startsWith("zonewise-downscale-"));
    if (await spoilNote(people, lease, "zonewise/pending-downscales"))
      await shrunk(people, zone, () => afterwards(people));
  },
  /** The note of what is reserved, of a definition that has no field for it. */
  reserved: async (people) => {
    const { world, draw } = people;
    const pods = podsIn(people);
    if (pods.length > 0) await drain(people, draw.of(pods));
    const uid = world.store.get(BUDGETS, NAMESPACE, BUDGET)?.metadata.uid;
    await spoilNote(people, () => `zonewise-budget-${uid}`, "zonewise/disrupted-pods");
    const others = podsIn(people);
    if (others.length > 0) await drain(people, draw.of(others));
  },
  /** Pods that are told that they go later answer something else. */
  noAge: (people) => {
    const zone = people.draw.of(people.shape.zones);
    return withPods(people, zone, { "sim/says": "prepared" }, () =>
      shrunk(people, zone, () => pause(people, people.draw.between(10_000, 40_000))),
    );
  },
  /** Somebody applies the manifests of the webhooks again, which have a placeholder for the bundle. */
  placeholder: async (people) => {
    const { world, draw, shape } = people;
    for (const kind of CONFIGURATIONS)
      for (const object of world.store.list(kind))
        if (object.metadata.annotations?.[OTHER_INJECTOR] === undefined)
          await world.ask("gitops", "PUT", `${pathOf(kind)}/${object.metadata.name}`, manifestOf(object, PLACEHOLDER));
    await newImage(people, draw.of(shape.zones));
    await afterwards(people, 20_000);
  },
  /** Bundles that another injector has not filled in, while the certificate is renewed. */
  notInjected: (people) => people.world.ask("human", "POST", OTHERS_PATH, notInjected()),
  /** An earlier definition let it in. */
  phasedSpec: withPhased(async (people, phased) => {
    const { store } = people.world;
    const found = store.get(PHASED_ROLLOUTS, NAMESPACE, PHASED);
    if (!found) return;
    store.update(PHASED_ROLLOUTS, put(found, ["spec", "progressDeadlineSeconds"], "soon"));
    await pause(people, people.draw.between(5000, 40_000));
    const spec = { progressDeadlineSeconds: null, ...fieldsOf(phasedObject(phased)["spec"]) };
    await insist(people, phasedPath, { spec });
  }),
  /** The expression for partitions fits no pod. */
  noPartition: async (people) => {
    const { draw } = people;
    await insist(people, `${BUDGETS_PATH}/${BUDGET}`, { spec: { podNamePartitionRegex: "[a-z-]+-p([0-9]+)" } });
    const pods = podsIn(people);
    if (pods.length > 0) await evict(people, draw.of(pods));
    await afterwards(people);
    await mendBudget(people);
  },
  /** Somebody edits the status of a zone, whose controller stands still. */
  noRevision: async (people) => {
    const { world, draw, shape } = people;
    const zone = draw.of(shape.zones);
    world.stall("statefulSets", draw.between(5000, 15_000));
    const field = draw.of(["currentRevision", "updateRevision"]);
    const revision = dig(setOf(people, zone), "status", field);
    await insist(people, `${SETS}/${zone}/status`, { status: { [field]: null } });
    await pause(people, draw.between(2000, 10_000));
    await insist(people, `${SETS}/${zone}/status`, { status: { [field]: revision } });
  },
  /** The shadow of a node that waits for its turn. */
  shadow: async (people) => {
    const { store } = people.world;
    const host = await waiting(people);
    const found = host && shadowOf(people, host);
    if (!host || !found) return;
    store.update(SHADOWS, put(found, ["spec", "state"], "Asleep"));
    await pause(people, PASSES_MS);
    await insist(people, shadowPath(host), { spec: { state: "Idle" } });
  },
  /** Of somebody who has none of the cluster. */
  noToken: (people) =>
    fleetOf(people).speak(anyHost(people), { route: "create", token: "secret", as: "somebody without a token" }),
  /** A node that waits for its turn is to go, and somebody still keeps it. */
  leavingNode: async (people) => {
    const host = await waiting(people);
    if (!host) return;
    await insist(people, nodePath(host), { metadata: { finalizers: [KEPT] } });
    await people.world.ask("human", "DELETE", nodePath(host));
    await pause(people, PASSES_MS);
    await insist(people, nodePath(host), { metadata: { finalizers: null } });
  },
  /** The policy is deleted, and the Lease on which it is noted that there was one; it is made again by somebody, or not yet. */
  firstPolicy: async (people) => {
    const { world, draw, shape } = people;
    if (!shape.nodes) return;
    const isEarlier = draw.chance(0.5);
    const object = world.store.get(POLICIES, undefined, POLICY);
    if (!isEarlier) world.fail("reconciler POST nodeupdatepolicies", PASSES_MS);
    const end = world.disturb((actor, { method, path }) => {
      const isMade = isReconciler(actor) && method === "POST" && path.startsWith(POLICIES_PATH);
      if (isMade && isEarlier && object && !world.store.get(POLICIES, undefined, POLICY))
        world.store.create(POLICIES, { ...object, metadata: { name: POLICY } });
      return undefined;
    });
    await world.ask("human", "DELETE", policyPath);
    await loseLease(people);
    await pause(people, draw.between(PASSES_MS, 3 * PASSES_MS));
    end();
    await applyPolicy(people, shape.nodes);
  },
} satisfies Readonly<Record<string, Action>>;

type Act = keyof typeof UNREAD_ACTS;

function actsIn({
  mirrored,
  prepared,
  budget,
  evictions,
  partitioned,
  certificate,
  phased,
  nodes,
}: Shape): readonly Act[] {
  const isBudgeted = budget !== undefined;
  return [
    "noRevision",
    ...(prepared ? (["admitted"] as const) : []),
    ...(mirrored?.delayMs ? (["noAge"] as const) : []),
    ...(isBudgeted && evictions?.older ? (["reserved"] as const) : []),
    ...(isBudgeted && partitioned ? (["noPartition"] as const) : []),
    ...(certificate ? (["placeholder", "notInjected"] as const) : []),
    ...(phased ? (["phasedSpec"] as const) : []),
    ...(nodes ? (["shadow", "noToken", "leavingNode", "firstPolicy"] as const) : []),
  ];
}

const unread: Action = (people) => UNREAD_ACTS[people.draw.of(actsIn(people.shape))](people);

export const UNREAD_AREA: Area = {
  shape(shape, draw) {
    const { followers, phased, budget, troubledMs } = shape;
    return {
      prepared: true,
      secondsBetween: 60,
      mirrored: followers ? undefined : { delayMs: 60_000 },
      evictions: { validating: false, older: draw.chance(0.5), delaySeconds: 0, aheadMs: 0 },
      budget: budget ?? 1,
      partitioned: draw.chance(0.5),
      certificate: draw.chance(0.5) ? { spentMinutes: draw.of([37, 39]) } : undefined,
      phased: phased ?? (draw.chance(0.4) ? { ...drawPhased(draw), last: "good" } : undefined),
      gate: undefined,
      troubledMs: Math.max(troubledMs, TROUBLED_MS),
    };
  },
  incidents: { unread },
};
