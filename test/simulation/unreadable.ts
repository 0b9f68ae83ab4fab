/** Objects that cannot be read: an earlier definition let them in, or somebody wrote them by hand. */
import type { Fields } from "../emulator/objects.ts";
import { GATE, gateObject, GATES } from "./checks/objects.ts";
import { NAMESPACE } from "./names.ts";
import { POLICIES, POLICY, policyObject } from "./nodes/shape.ts";
import { insist, type People } from "./person.ts";
import type { Shape } from "./shape.ts";

interface Unreadable {
  readonly what: string;
  readonly spoil: (people: People) => unknown;
  /** As it was written. */
  readonly mend: (people: People) => Promise<unknown>;
}

const LEASE = "zonewise-reconciler";
const LEASE_PATH = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${LEASE}`;

/** Stores fields that its definition would refuse. */
function store(
  { world }: People,
  [resource, namespace, name]: readonly [string, string | undefined, string],
  fields: Fields,
): void {
  const object = world.store.get(resource, namespace, name);
  if (object) world.store.update(resource, { ...object, spec: { ...(object["spec"] as Fields), ...fields } });
}

/** The reconcilers write it again by themselves. */
const byItself = (): Promise<void> => Promise.resolve();
const ofLease = (what: string, patch: object): Unreadable => ({
  what: `${what} of the Lease`,
  spoil: (people) => insist(people, LEASE_PATH, patch),
  mend: byItself,
});

const TOTALS = {
  metadata: {
    annotations: {
      "zonewise/totals": '{"passes":"x","series":{"zonewise_ticks_total":[[null,"x"]]}}',
      "zonewise/successor": "soon",
    },
  },
};

const OF_LEASE: readonly Unreadable[] = [
  ofLease("the totals", TOTALS),
  ofLease("the time", { spec: { renewTime: null, acquireTime: null } }),
  ofLease("the duration", { spec: { leaseDurationSeconds: null } }),
];

const ofGate: Unreadable = {
  what: "the gate",
  spoil: (people) => store(people, [GATES, NAMESPACE, GATE], { checks: "none" }),
  mend: (people) => {
    const { gate } = people.shape;
    const path = `/apis/zonewise.dev/v1/namespaces/${NAMESPACE}/rolloutgates/${GATE}`;
    return gate
      ? insist(people, path, { spec: { checks: null, ...(gateObject(gate)["spec"] as Fields) } })
      : byItself();
  },
};

const ofPolicy: Unreadable = {
  what: "the policy",
  spoil: (people) => store(people, [POLICIES, undefined, POLICY], { maxConcurrent: "many" }),
  mend: (people) => {
    const { nodes } = people.shape;
    const path = `/apis/zonewise.dev/v1/nodeupdatepolicies/${POLICY}`;
    return nodes ? insist(people, path, { spec: policyObject(nodes)["spec"] }) : byItself();
  },
};

export const unreadableIn = ({ gate, nodes }: Shape): readonly Unreadable[] => [
  ...OF_LEASE,
  ...(gate ? [ofGate, ofGate] : []),
  ...(nodes ? [ofPolicy, ofPolicy] : []),
];
