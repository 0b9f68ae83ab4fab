/** Reads the resources that zones mirror, for `zonewise doctor`. */
import { hasCode, messageOf } from "../../infra/errors.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import { statefulSets } from "../../infra/kubernetes/resources.ts";
import { once } from "../../infra/once.ts";
import { visitEach } from "../../infra/slots.ts";
import type { Mirror } from "../../reconciler/model/scaling.ts";
import { readZone, type Zone } from "../../reconciler/model/zone.ts";
import { createReferences } from "../../reconciler/scaling/act/references.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import { type Finding, notChecked, runChecks } from "../decide/doctor/check.ts";
import { MIRRORS, type MirrorReading } from "../decide/doctor/rollouts.ts";
import type { Session } from "../session.ts";

const READS_AT_ONCE = 8;

/**
 * Throws the error of the API server if the StatefulSets cannot be read; a reference that cannot be read becomes a
 * finding.
 */
export async function examineReferences(session: Session): Promise<Finding[]> {
  const query = session.namespace === "" ? {} : { namespace: session.namespace };
  const { items } = await readAll({ resource: statefulSets, query, read: readZone }, session);
  const mirroring = items.flatMap(readMirrored);
  const mirrored = Map.groupBy(mirroring, ({ zone, mirror }) =>
    [zone.namespace, mirror.apiVersion, mirror.kind, mirror.name].join(" "),
  );
  const { read } = createReferences(session.cluster);
  const list = once(
    async ({ zone, mirror }: Mirrored) => await listNames(session, zone, mirror),
    ({ zone, mirror }) => [zone.namespace, mirror.apiVersion, mirror.kind].join(" "),
  );
  const unread: Finding[] = [];
  const readings = new Map<Zone, MirrorReading>();
  await visitEach(mirrored.values(), { atOnce: READS_AT_ONCE }, async (own) => {
    const [first] = own;
    if (!first) return;
    try {
      const missing = await read(first.zone.namespace, first.mirror).then(() => undefined, whyMissing);
      const names = missing === undefined ? [] : await list(first);
      for (const { zone, mirror } of own) readings.set(zone, { zone, mirror, missing, names });
    } catch (error) {
      unread.push(notChecked(`${first.mirror.kind}/${first.mirror.name}, which zones mirror`, error));
    }
  });
  const found = mirroring.flatMap(({ zone }) => readings.get(zone) ?? []);
  return [...runChecks(MIRRORS, found), ...unread];
}

interface Mirrored {
  readonly zone: Zone;
  readonly mirror: Mirror;
}

const readMirrored = (zone: Zone): Mirrored[] => (zone.scaling.mirror ? [{ zone, mirror: zone.scaling.mirror }] : []);

function whyMissing(error: unknown): string {
  if (hasCode(error, "NotFound", "Invalid")) return messageOf(error);
  throw error;
}

/** Empty if they may not be listed: they only serve as suggestions. */
async function listNames({ cluster }: Session, { namespace }: Zone, { group = "", kind }: Mirror): Promise<string[]> {
  const [resource] = await cluster.discover(group, kind).catch(() => []);
  if (!resource) return [];
  const objects = await collect(cluster.list(resource, { namespace })).catch(() => []);
  return objects.flatMap((one) => (one as { readonly metadata?: { readonly name?: string } }).metadata?.name ?? []);
}
