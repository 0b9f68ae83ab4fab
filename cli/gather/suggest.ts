/** Suggests existing names for a name that does not exist. */
import { findNear } from "../../infra/edit-distance.ts";
import { hasCode } from "../../infra/errors.ts";
import { phasedRollouts, rolloutGates } from "../../infra/kubernetes/custom-resources.ts";
import { namespaces, nodes, pods, type Resource } from "../../infra/kubernetes/resources.ts";
import { listSome, MAX_NAMED } from "../../infra/cut.ts";
import { gatherZones, readAll } from "../../reconciler/snapshot/gather.ts";
import { CliError } from "../exit.ts";
import type { Session } from "../session.ts";

interface Named {
  readonly metadata?: { readonly name?: string };
}

const LISTED = {
  pods: { resource: pods, isGlobal: false },
  gates: { resource: rolloutGates, isGlobal: false },
  phasedrollouts: { resource: phasedRollouts, isGlobal: false },
  nodes: { resource: nodes, isGlobal: true },
  namespaces: { resource: namespaces, isGlobal: true },
} as const satisfies Readonly<Record<string, { readonly resource: Resource<Named>; readonly isGlobal: boolean }>>;

/** What a name may be of; `objects` are groups and their StatefulSets. */
export type Plural = keyof typeof LISTED | "groups" | "statefulsets" | "objects";

/** The names that the cluster has of these. */
async function findNames(session: Session, what: Plural): Promise<readonly string[]> {
  if (what === "groups" || what === "statefulsets" || what === "objects") {
    const { groups } = await gatherZones([session.namespace], session);
    const zones = [...groups.values()].flat();
    const own = zones.flatMap(({ group, name }) =>
      what === "groups" ? [group] : what === "statefulsets" ? [name] : [group, name],
    );
    return [...new Set(own)];
  }
  const { resource, isGlobal } = LISTED[what];
  const query = isGlobal || session.namespace === "" ? {} : { namespace: session.namespace };
  const read = ({ metadata }: Named): string => metadata?.name ?? "";
  return (await readAll({ resource, query, read }, session)).items;
}

interface Missing {
  readonly what: Plural;
  readonly name: string;
  readonly message: string;
}

/**
 * The error that there is no object of the name, with the existing names; without them if they cannot be listed. If
 * there are no objects, and no such namespace either, the error says so.
 */
export async function missing(session: Session, { what, name, message }: Missing): Promise<CliError> {
  const names = await findNames(session, what).catch(() => undefined);
  const wrongNamespace = names?.length === 0 ? await missingNamespace(session) : undefined;
  if (wrongNamespace) return wrongNamespace;
  return new CliError(message, names ? { hint: suggest(name, names, what) } : {});
}

/** The error that there is no such namespace; undefined if it exists, or if that may not be read. */
export async function missingNamespace(session: Session): Promise<CliError | undefined> {
  const { cluster, namespace: name } = session;
  if (name === "") return undefined;
  const isThere = await cluster.get(namespaces, { name }).then(
    () => true,
    (error: unknown) => !hasCode(error, "NotFound"),
  );
  if (isThere) return undefined;
  return await missing(session, { what: "namespaces", name, message: `no namespace ${JSON.stringify(name)}` });
}

/**
 * The only object of a name, `what`; undefined if there is none. Throws a `CliError` with their namespaces if there are
 * several, as with `-A`: choosing one would be a guess.
 */
export function findOnly<T>(found: readonly T[], namespaceOf: (one: T) => string, what: string): T | undefined {
  if (found.length <= 1) return found[0];
  const places = found.map(namespaceOf).join(", ");
  throw new CliError(`${what} is in several namespaces: ${places}`, { hint: "choose one with -n" });
}

/** `did you mean …?`, or the existing names. `what` is their plural. */
export function suggest(wrong: string, names: readonly string[], what: string): string {
  if (names.length === 0) return `there are no ${what} there`;
  const holding = wrong === "" ? [] : names.filter((name) => name.includes(wrong));
  const near = [...new Set([...findNear(wrong, names), ...holding])];
  if (near.length > 0) return `did you mean ${near.slice(0, MAX_NAMED).join(", ")}?`;
  return `there are: ${listSome(names)}`;
}
