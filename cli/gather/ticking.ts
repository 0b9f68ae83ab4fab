/** Finds out whether the reconcilers that serve the namespace of a command tick. */
import { isUnanswered, messageOf } from "../../infra/errors.ts";
import type { Call, Page } from "../../infra/kubernetes/cluster.ts";
import { rolloutGroups } from "../../infra/kubernetes/custom-resources.ts";
import { cronJobs, statefulSetNames } from "../../infra/kubernetes/resources.ts";
import { listSome } from "../../infra/cut.ts";
import { LABELS } from "../../reconciler/model/annotations.ts";
import { visitEach } from "../../infra/slots.ts";
import { readTicking } from "../../reconciler/report/act/read-ticking.ts";
import { concerns, notKnown, type NoTick } from "../../reconciler/report/ticking.ts";
import type { GroupState } from "../decide/group-state.ts";
import type { Session } from "../session.ts";
import { CRON_JOB, HOME } from "./settings.ts";

type Reader = Pick<Session, "cluster" | "clock" | "namespace" | "settings">;

/** Marks the record of a group as old if the reconciler of its namespace does not tick. */
export function markOld<T extends GroupState>(group: T, noTicks: readonly NoTick[]): T {
  const isOld = noTicks.some((one) => one.state === "stopped" && concerns(one, group.namespace));
  return isOld ? { ...group, isOld } : group;
}

const AT_A_TIME = 4;
/** Milliseconds for the list of namespaces, and again for all other reads: the command itself starts after them. */
const READ_MS = 5000;

/**
 * The reconcilers that do not tick, or whose ticking is unknown, a sentence each. By default, reads the reconcilers of
 * the command's namespace, or of all namespaces with objects of Zonewise. Never rejects.
 */
export async function gatherTicking(reader: Reader, places?: readonly string[]): Promise<readonly NoTick[]> {
  const found = new Map<string, NoTick>();
  const namespaces = places ?? (await findPlaces(reader));
  if (typeof namespaces === "string") return [notKnown({ namespace: HOME, lease: CRON_JOB }, namespaces)];
  const call = shareDeadline(reader.clock);
  await visitEach(namespaces, { atOnce: AT_A_TIME }, async (namespace) => {
    const noTick = await readOne(reader, namespace, call);
    if (!noTick) return;
    // All calls share one deadline: an error after it says nothing new.
    const key = noTick.state === "unknown" && call.isOver() ? "unanswered" : noTick.message;
    const first = found.get(key) ?? noTick;
    const served = [...(first.served ?? []), ...(namespace === "" ? [] : [namespace])];
    found.set(key, { ...first, ...(served.length > 0 && { served }) });
  });
  return [...found].map(([key, one]) => (key === "unanswered" ? nameServed(one) : one));
}

/** One sentence for several namespaces for which the API server did not answer. */
const nameServed = (one: NoTick): NoTick =>
  (one.served ?? []).length > 1
    ? { ...one, message: `${one.message}; the same for ${listSome(one.served ?? [])}` }
    : one;

/**
 * Each call gets the time that the calls before it have left. Uses the monotonic clock: the wall clock jumps to the
 * server's with the first answer.
 */
function shareDeadline({ monotonic }: Reader["clock"]): Call & { readonly isOver: () => boolean } {
  const endAt = monotonic() + READ_MS;
  return {
    isOver: () => monotonic() >= endAt,
    get deadlineMs() {
      return Math.max(1, endAt - monotonic());
    },
  };
}

/**
 * For all namespaces: those with a RolloutGroup, a zone, or a reconciler; without any, or without the right to list
 * them, the namespace of an installation for all. If the API server does not answer, the reason.
 */
async function findPlaces(reader: Omit<Reader, "settings">): Promise<readonly string[] | string> {
  const { cluster, namespace } = reader;
  if (namespace !== "") return [namespace];
  const call = shareDeadline(reader.clock);
  const listGroups = () => cluster.list(rolloutGroups, {}, call);
  const listZones = () => cluster.list(statefulSetNames, { labelSelector: LABELS.rolloutGroup }, call);
  const listReconcilers = () => cluster.list(cronJobs, { fieldSelector: `metadata.name=${CRON_JOB}` }, call);
  const names = new Set<string>();
  for (const list of [listGroups, listZones, listReconcilers]) {
    const unanswered = await addNamespaces(list(), names);
    if (unanswered !== undefined) return unanswered;
  }
  return names.size > 0 ? [...names] : [""];
}

type Placed = { readonly metadata?: { readonly namespace?: string } };

/**
 * Resolves with the reason if the API server does not answer. A missing right is ignored: the command itself reports
 * it.
 */
async function addNamespaces(pages: AsyncIterable<Page<Placed>>, names: Set<string>): Promise<string | undefined> {
  try {
    for await (const page of pages) for (const { metadata } of page.items) names.add(metadata?.namespace ?? "");
  } catch (error) {
    if (isUnanswered(error)) return messageOf(error);
  }
  return undefined;
}

async function readOne({ cluster, clock, settings }: Reader, served: string, call: Call): Promise<NoTick | undefined> {
  const { homes, lease: name, unanswered } = await settings(served, call);
  const [first = served, ...elsewhere] = homes.filter((home) => home !== "");
  if (unanswered !== undefined) return notKnown({ namespace: first, lease: name }, unanswered);
  const noTick = await readTicking({
    cluster,
    installation: { namespace: first, lease: name, cronJob: CRON_JOB },
    elsewhere,
    served,
    now: clock.now,
    call,
  });
  // Without a group, it may be installed in any namespace.
  return served === "" && noTick?.reason === "NotInstalled" ? undefined : noTick;
}
