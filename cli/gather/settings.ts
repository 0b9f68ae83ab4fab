/**
 * The settings of the installation that serves a namespace, as its reconciler's CronJob has them: what the CLI decides
 * must be decided by the same (§18.6).
 */
import { absent, hasCode, messageOf } from "../../infra/errors.ts";
import { once } from "../../infra/once.ts";
import { configMaps, type Resource } from "../../infra/kubernetes/resources.ts";
import { VARIABLES } from "../../infra/config/variables.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";

/** The fields that are read. */
interface CronJob {
  readonly metadata?: { readonly namespace?: string };
  readonly spec?: {
    readonly jobTemplate?: {
      readonly spec?: { readonly template?: { readonly spec?: { readonly containers?: readonly Container[] } } };
    };
  };
}

interface Container {
  readonly env?: readonly EnvVar[];
  readonly envFrom?: readonly { readonly configMapRef?: { readonly name?: string } }[];
}

interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly configMapKeyRef?: { readonly name?: string; readonly key: string } };
}

const cronJobs: Resource<CronJob> = { group: "batch", version: "v1", plural: "cronjobs" };

export interface Settings {
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
  readonly clusterDomain: string;
  /** Where the BottlerocketShadows are. */
  readonly shadows: string;
  /** Why these are the defaults and not what is set, in a clause; undefined if they were read. */
  readonly assumed: string | undefined;
}

/** Name of the CronJob, and of its namespace in an installation for all namespaces. */
const CRON_JOB = "zonewise-reconciler";
const HOME = "zonewise";

interface Reader {
  readonly cluster: Cluster;
}

/** Each namespace is read once. Never rejects. */
export function createSettings(reader: Reader): (namespace: string) => Promise<Settings> {
  return once((namespace) => readSettings(reader, namespace));
}

async function readSettings(reader: Reader, namespace: string): Promise<Settings> {
  let what = `CronJob ${CRON_JOB}`;
  try {
    const job = await findJob(reader, [...new Set([namespace, HOME])]);
    if (!job) return toSettings(new Map(), `there is no CronJob ${CRON_JOB} in ${namespace} or ${HOME}`);
    what = `a ConfigMap of ${what}`;
    return toSettings(await readEnvironment(reader, job), undefined);
  } catch (error) {
    return toSettings(
      new Map(),
      `${what} cannot be read: ${hasCode(error, "Forbidden") ? "no right to" : messageOf(error)}`,
    );
  }
}

async function findJob({ cluster }: Reader, namespaces: readonly string[]): Promise<CronJob | undefined> {
  for (const namespace of namespaces) {
    const job = await cluster.get(cronJobs, { namespace, name: CRON_JOB }).catch(absent);
    if (job) return job;
  }
  return undefined;
}

type Data = Readonly<Record<string, string>>;
type ReadMap = (name: string | undefined) => Promise<Data>;

/** Variables of the first container: a later one wins, as in Kubernetes, and `env` over `envFrom`. */
async function readEnvironment(
  { cluster }: Reader,
  { metadata: { namespace = "" } = {}, spec }: CronJob,
): Promise<ReadonlyMap<string, string>> {
  const [container = {}] = spec?.jobTemplate?.spec?.template?.spec?.containers ?? [];
  const readMap: ReadMap = async (name = "") =>
    (await cluster.get(configMaps, { namespace, name }).catch(absent))?.data ?? {};
  return new Map((await Promise.all([...readFrom(container, readMap), ...readOwn(container, readMap)])).flat());
}

const readFrom = ({ envFrom = [] }: Container, readMap: ReadMap): Promise<[string, string][]>[] =>
  envFrom.flatMap(({ configMapRef: ref }) => (ref ? [readMap(ref.name).then((data) => Object.entries(data))] : []));

const readOwn = ({ env = [] }: Container, readMap: ReadMap): Promise<[string, string][]>[] =>
  env
    .filter(({ name }) => NAMES.has(name))
    .map(async ({ name, value, valueFrom }) => {
      const ref = valueFrom?.configMapKeyRef;
      const found = ref ? (await readMap(ref.name))[ref.key] : value;
      return found === undefined ? [] : [[name, found] as [string, string]];
    });

const NAMES: ReadonlySet<string> = new Set([
  "ZONE_TRACKER_CONFIG_MAP_NAME",
  "KUBERNETES_CLUSTER_DOMAIN",
  "NODE_UPDATES_NAMESPACE",
]);

function toSettings(environment: ReadonlyMap<string, string>, assumed: string | undefined): Settings {
  const read = (
    name: "ZONE_TRACKER_CONFIG_MAP_NAME" | "KUBERNETES_CLUSTER_DOMAIN" | "NODE_UPDATES_NAMESPACE",
  ): string => environment.get(name) || VARIABLES[name].default;
  return {
    zoneTracker: read("ZONE_TRACKER_CONFIG_MAP_NAME"),
    clusterDomain: read("KUBERNETES_CLUSTER_DOMAIN"),
    shadows: read("NODE_UPDATES_NAMESPACE"),
    assumed,
  };
}
