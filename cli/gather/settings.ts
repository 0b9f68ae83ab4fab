/**
 * The settings of the installation that serves a namespace, from its reconciler's CronJob: the CLI must decide by the
 * same settings (§18.6).
 */
import { absent, hasCode, isUnanswered, messageOf } from "../../infra/errors.ts";
import { ownValue } from "../../infra/json.ts";
import { configMaps, cronJobs, type CronJob, type RunContainer } from "../../infra/kubernetes/resources.ts";
import { VARIABLES } from "../../infra/config/variables.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { collect } from "../../infra/kubernetes/collect.ts";

interface Settings {
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
  /** The namespace of the BottlerocketShadows. */
  readonly shadows: string;
  /** Name of the reconciler's Lease. */
  readonly lease: string;
  /**
   * The namespaces in which the reconciler of the namespace may be; only one if it was found, or is known not to exist.
   */
  readonly homes: readonly string[];
  /** The reason why these are the defaults and not the real settings, in a clause; undefined if they were read. */
  readonly assumed: string | undefined;
  /** The reason why the API server has not answered, in a clause. The next call reads again. */
  readonly unanswered?: string;
}

/** Reads the settings for a namespace; `call` bounds each read, unless they were read before. */
export type ReadSettings = (namespace: string, call?: Call) => Promise<Settings>;

/** Name of the CronJob, and of its namespace in an installation for all namespaces. */
export const CRON_JOB = "zonewise-reconciler";
export const HOME = "zonewise";

interface Reader {
  readonly cluster: Cluster;
  readonly call?: Call | undefined;
}

/** Each namespace is read once. Never rejects. */
export function createSettings({ cluster }: Pick<Reader, "cluster">): ReadSettings {
  const known = new Map<string, Promise<Settings>>();
  return async (namespace, call) => {
    const reading = known.get(namespace) ?? readSettings({ cluster, call }, namespace);
    known.set(namespace, reading);
    const settings = await reading;
    if (settings.unanswered !== undefined) known.delete(namespace);
    return settings;
  };
}

async function readSettings(reader: Reader, namespace: string): Promise<Settings> {
  let what = `CronJob ${CRON_JOB}`;
  let homes: readonly string[] = [...new Set([namespace, HOME])];
  try {
    const job = await findJob(reader, namespace, homes);
    if (!job)
      return toSettings(new Map(), { homes, assumed: `there is no CronJob ${CRON_JOB} in ${homes.join(" or ")}` });
    const home = job.metadata?.namespace ?? namespace;
    homes = [home];
    what = `a ConfigMap of ${what}`;
    const environment = await readEnvironment(reader, job);
    const isServed = home === namespace || namespace === "" || serves(environment, namespace);
    return toSettings(environment, { homes: isServed ? homes : [namespace], assumed: undefined });
  } catch (error) {
    const why = hasCode(error, "Forbidden") ? "no right to" : messageOf(error);
    const assumed = `${what} cannot be read: ${why}`;
    return { ...toSettings(new Map(), { homes, assumed }), ...(isUnanswered(error) && { unanswered: assumed }) };
  }
}

/** That of one of these namespaces; otherwise one anywhere that serves the namespace, if they may be listed. */
async function findJob(reader: Reader, served: string, namespaces: readonly string[]): Promise<CronJob | undefined> {
  const { cluster, call } = reader;
  for (const namespace of namespaces) {
    const job = await cluster.get(cronJobs, { namespace, name: CRON_JOB }, call).catch(absent);
    if (job) return job;
  }
  const query = { fieldSelector: `metadata.name=${CRON_JOB}` };
  const jobs = await collect(cluster.list(cronJobs, query, call)).catch((error: unknown) => {
    if (!hasCode(error, "Forbidden")) throw error;
    return [];
  });
  for (const job of jobs) if (serves(await readEnvironment(reader, job), served)) return job;
  return undefined;
}

type Data = Readonly<Record<string, string>>;
type ReadMap = (name: string | undefined) => Promise<Data>;

/** Variables of the first container: a later one wins, as in Kubernetes, and `env` over `envFrom`. */
async function readEnvironment(
  { cluster, call }: Reader,
  { metadata: { namespace = "" } = {}, spec }: CronJob,
): Promise<ReadonlyMap<string, string>> {
  const [container = {}] = spec?.jobTemplate?.spec?.template?.spec?.containers ?? [];
  const readMap: ReadMap = async (name = "") =>
    (await cluster.get(configMaps, { namespace, name }, call).catch(absent))?.data ?? {};
  return new Map((await Promise.all([...readFrom(container, readMap), ...readOwn(container, readMap)])).flat());
}

const readFrom = ({ envFrom = [] }: RunContainer, readMap: ReadMap): Promise<[string, string][]>[] =>
  envFrom.flatMap(({ configMapRef: ref }) => (ref ? [readMap(ref.name).then((data) => Object.entries(data))] : []));

const readOwn = ({ env = [] }: RunContainer, readMap: ReadMap): Promise<[string, string][]>[] =>
  env
    .filter(({ name }) => NAMES.has(name))
    .map(async ({ name, value, valueFrom }) => {
      const ref = valueFrom?.configMapKeyRef;
      const found = ref ? ownValue(await readMap(ref.name), ref.key) : value;
      return found === undefined ? [] : [[name, found] as [string, string]];
    });

/** True if the reconciler of another namespace serves this one: by a name, several names, or `*`. */
function serves(environment: ReadonlyMap<string, string>, namespace: string): boolean {
  const names = new Set((environment.get("NAMESPACES") ?? "").split(",").map((name) => name.trim()));
  return names.has("*") || names.has(namespace);
}

const NAMES: ReadonlySet<string> = new Set([
  "ZONE_TRACKER_CONFIG_MAP_NAME",
  "NODE_UPDATES_NAMESPACE",
  "LEASE_NAME",
  "NAMESPACES",
]);

type Known = "ZONE_TRACKER_CONFIG_MAP_NAME" | "NODE_UPDATES_NAMESPACE" | "LEASE_NAME";

function toSettings(
  environment: ReadonlyMap<string, string>,
  { homes, assumed }: Pick<Settings, "homes" | "assumed">,
): Settings {
  const read = (name: Known): string => environment.get(name) || VARIABLES[name].default;
  return {
    zoneTracker: read("ZONE_TRACKER_CONFIG_MAP_NAME"),
    shadows: read("NODE_UPDATES_NAMESPACE"),
    lease: read("LEASE_NAME"),
    homes,
    assumed,
  };
}
