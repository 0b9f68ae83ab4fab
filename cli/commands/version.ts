/** `zonewise version`: the versions of this command, of what is installed, and of the API server. */
import own from "../../package.json" with { type: "json" };
import { absent, hasCode } from "../../infra/errors.ts";
import { cronJobs, deployments, serverVersion } from "../../infra/kubernetes/resources.ts";
import { EXIT } from "../exit.ts";
import { CRON_JOB } from "../gather/settings.ts";
import { print } from "../output/print.ts";
import { formatTable } from "../output/table.ts";
import type { Command, Session } from "../session.ts";

export const VERSION = own.version;
const FUNCTIONS = "zonewise-functions";

export const version: Command = {
  name: "version",
  arguments: "",
  group: "Check",
  summary: "The versions of this command, of what is installed, and of the API server",
  examples: [
    ["version", "does the installed version match this command?"],
    ["version -n NAMESPACE", "the one that serves another namespace"],
  ],
  flags: [],
  exits: {
    0: "the same version is installed",
    1: "another version is installed",
    4: "nothing is installed, or its version is unknown",
  },
  async run(session) {
    const [parts, { gitVersion }] = await Promise.all([
      gatherParts(session),
      session.cluster.get(serverVersion, { name: "" }),
    ]);
    const installed = compareVersions(VERSION, parts);
    print(session, { version: VERSION, installed, kubernetes: gitVersion }, () => {
      const rows = installed.map(({ name, version, matches, note }) => [
        name,
        version ?? "not known",
        { text: note, tone: matches === false ? ("bad" as const) : ("plain" as const) },
      ]);
      const all = [["this command", VERSION, ""], ...rows, ["API server", gitVersion, ""]];
      const nothing = `nothing is installed for ${session.namespace || "any namespace"}\n`;
      return formatTable(["WHAT", "VERSION", "NOTE"], all, session.io) + (rows.length === 0 ? nothing : "");
    });
    if (installed.some(({ matches }) => matches === false)) return EXIT.no;
    return installed.length > 0 && installed.every(({ matches }) => matches) ? EXIT.ok : EXIT.unknown;
  },
};

interface Template {
  readonly spec?: { readonly containers?: readonly { readonly image?: string }[] };
}

/** The reconciler that serves the namespace, and the functions beside it. */
async function gatherParts({ cluster, namespace, settings }: Session): Promise<readonly InstalledPart[]> {
  const homes = (await settings(namespace)).homes.filter((one) => one !== "");
  const parts = homes.map(async (home) => {
    const [job, server] = await Promise.all([
      cluster.get(cronJobs, { namespace: home, name: CRON_JOB }).catch(leaveOut),
      cluster.get(deployments, { namespace: home, name: FUNCTIONS }).catch(leaveOut),
    ]);
    return [
      ...toParts(`cronjob ${home}/${CRON_JOB}`, job?.spec?.jobTemplate?.spec?.template),
      ...toParts(`deployment ${home}/${FUNCTIONS}`, server?.spec?.template),
    ];
  });
  return (await Promise.all(parts)).flat();
}

/** By the first container. */
const toParts = (name: string, template: Template | undefined): InstalledPart[] =>
  (template?.spec?.containers ?? []).slice(0, 1).map(({ image = "" }) => ({ name, image }));

function leaveOut(error: unknown): undefined {
  if (!hasCode(error, "Forbidden")) absent(error);
}

interface InstalledPart {
  /** `cronjob default/zonewise-reconciler` */
  readonly name: string;
  readonly image: string;
}

interface Installed extends InstalledPart {
  /** By the tag of its image; absent if the tag names no version. */
  readonly version?: string;
  /** Absent if its version is not known. */
  readonly matches?: boolean;
  readonly note: string;
}

/** `host:5000/zonewise:v1.2.3@sha256:…` */
const VERSION_TAG = /:v?(\d+\.\d+\.\d+(?:[-+][\w.+-]+)?)(?:@sha256:\w+)?$/;

export const compareVersions = (own: string, parts: readonly InstalledPart[]): Installed[] =>
  parts.map((part) => {
    const [, version] = VERSION_TAG.exec(part.image) ?? [];
    if (version === undefined) return { ...part, note: `the tag of image ${part.image} names no version` };
    const matches = version === own;
    return {
      ...part,
      version,
      matches,
      note: matches ? "" : `this command is ${own}: use the installed version of it`,
    };
  });
