/** A Lease that people delete, and a second group that comes, goes and comes again. */
import { drawCertificate } from "../certificates/trust.ts";
import { dig, type Draft, textOf } from "../../emulator/objects.ts";
import { GROUP, LEASES, NAMESPACE, OTHER_GROUP } from "../names.ts";
import { type Action, insist, pause, type People, recreate, SETS, until } from "../person.ts";
import { type Shape, zoneObject } from "../shape.ts";
import type { Area } from "./incident.ts";

const LEASE = "zonewise-reconciler";
const LEASE_PATH = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/${LEASE}`;
export const GROUPS_PATH = `/apis/zonewise.dev/v1/namespaces/${NAMESPACE}/rolloutgroups`;
const OTHER_ZONES = ["a", "b"].map((zone) => `${OTHER_GROUP}-zone-${zone}`);
const SET_MS = 30_000;
const QUIET_MS = 300_000;

const leaseOf = ({ world }: People) => world.store.get(LEASES, NAMESPACE, LEASE);
const renewedBy = (people: People): string => textOf(dig(leaseOf(people), "spec", "holderIdentity")) ?? "";

/** A zone of the second group, which nobody scales. */
export function otherZone(shape: Shape, name: string): Draft {
  const bare = { followers: false, mirrored: undefined, prepared: false, secondsBetween: 0, nodes: undefined };
  const text = JSON.stringify(zoneObject({ ...shape, ...bare, replicas: 1 }, name));
  return JSON.parse(text.replaceAll(`"${GROUP}"`, `"${OTHER_GROUP}"`)) as Draft;
}

/** The second group goes, with what is told of it. */
const removeOtherGroup = ({ world }: People): Promise<unknown> =>
  Promise.all([
    ...OTHER_ZONES.map((zone) => world.ask("human", "DELETE", `${SETS}/${zone}`)),
    world.ask("human", "DELETE", `${GROUPS_PATH}/${OTHER_GROUP}`),
  ]);

/** Somebody deletes the Lease that nobody has. */
const loseLease: Action = async (people) => {
  if (await until(people, () => leaseOf(people) !== undefined && renewedBy(people) === "", { ms: 70_000 }))
    await people.world.ask("human", "DELETE", LEASE_PATH);
};

const INCIDENTS: Readonly<Record<string, Action>> = {
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
    await until(people, () => world.processes().length > 0 && renewedBy(people) !== "", { ms: 60_000 });
    await removeOtherGroup(people);
    await pause(people, draw.between(6000, 14_000));
    await Promise.all(OTHER_ZONES.map(make));
  },
  loseLease,
};

export const LEASES_AREA: Area = {
  shape: ({ skewMs, certificate }, draw) => ({
    skewMs: Math.max(skewMs, SET_MS),
    certificate: certificate ?? (draw.chance(0.3) ? drawCertificate(draw) : undefined),
  }),
  incidents: INCIDENTS,
  /** Once it is long quiet, a field of a zone changes that makes no pods, and one of the group. */
  async setRight(people) {
    await pause(people, QUIET_MS);
    const persistentVolumeClaimRetentionPolicy = { whenDeleted: "Retain", whenScaled: "Delete" };
    const zone = people.draw.of(people.shape.zones);
    await insist(people, `${SETS}/${zone}`, { spec: { persistentVolumeClaimRetentionPolicy } });
    await pause(people, 5000);
    await insist(people, `${GROUPS_PATH}/${GROUP}`, { spec: { progressDeadlineSeconds: 1200 } });
  },
};
