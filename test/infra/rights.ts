/**
 * What the processes need of RBAC, read from their sources, and what the manifests allow them. A right is `verb
 * resource[/subresource]`.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import * as custom from "../../infra/kubernetes/custom-resources.ts";
import * as common from "../../infra/kubernetes/resources.ts";
import { type Manifest, read, ROOT } from "./manifests.ts";

const resources = { ...common, ...custom };

/** The port's verbs as RBAC knows them. */
const VERBS: Readonly<Record<string, string>> = {
  list: "list",
  get: "get",
  watch: "watch",
  create: "create",
  replace: "update",
  patch: "patch",
  change: "patch",
  remove: "delete",
};
const CALL = new RegExp(
  String.raw`\bcluster\s*\.(?<verb>${Object.keys(VERBS).join("|")})(?:<[^(]*>)?\(\s*(?<resource>[\w.]+),(?<rest>[^;]*)`,
  "g",
);

/** A list by way of gather.ts. */
const LIST = /\breadAll\(\s*\{\s*resource: (?<resource>\w+)/g;
/** A status by way of write-status.ts, and how the file writes it. */
const STATUS = /\bwriteStatus(?:<[^(]*>)?\(\s*(?<resource>(?!cluster\b)\w+),\s+(?:change\b|\{)/g;
const BY_PATCH = /\bby: "patch"/;

const HOOKS = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"];
/** What the calls of a file may be about that name their resource by a variable. */
const BY_VARIABLE: Readonly<Record<string, readonly string[]>> = {
  "cli/commands/annotations.ts": ["rolloutgates", "phasedrollouts"],
  "cli/commands/events.ts": ["events"],
  "cli/commands/history.ts": ["events"],
  "cli/completion.ts": ["pods", "nodes"],
  "cli/gather/examine.ts": ["statefulsets", "poddisruptionbudgets", ...HOOKS],
  "cli/gather/examine-references.ts": ["replicatemplates"],
  "cli/gather/settings.ts": ["cronjobs"],
  "functions/downscale/no-downscale.ts": ["statefulsets", "deployments", "replicasets"],
  "infra/certs/act/inject.ts": HOOKS,
  // They pass on what others list, and what others write.
  "infra/kubernetes/limit-lists.ts": [],
  "infra/kubernetes/write-status.ts": [],
  "reconciler/run/tick-watch.ts": [],
  "reconciler/snapshot/change-watch.ts": ["statefulsets", "phasedrollouts", ...HOOKS],
  "reconciler/snapshot/gather.ts": ["statefulsets", "pods", "phasedrollouts", "zoneawarepoddisruptionbudgets"],
  "reconciler/nodes/act/read-pods.ts": ["statefulsets", "replicasets", "daemonsets"],
  "reconciler/budget/act/deny-again.ts": ["statefulsets", "pods", "zoneawarepoddisruptionbudgets"],
  // Whatever users let zones mirror; the manifests allow the kind that is ours.
  "reconciler/scaling/act/references.ts": ["replicatemplates"],
  "reconciler/scaling/act/take-scaling-step.ts": ["replicatemplates/status"],
};

/** The rights that the calls of a file use. Fails for a resource that is a variable in a file without a row above. */
function rightsUsedIn(file: string): string[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  const lists = [...text.matchAll(LIST)].map(({ groups: { resource = "" } = {} }) => ({
    groups: { verb: "list", resource, rest: "" },
  }));
  const status = { verb: BY_PATCH.test(text) ? "patch" : "replace", rest: 'subresource: "status"' };
  const statuses = [...text.matchAll(STATUS)].map(({ groups: { resource = "" } = {} }) => ({
    groups: { resource, ...status },
  }));
  return [...text.matchAll(CALL), ...lists, ...statuses].flatMap(
    ({ groups: { verb = "", resource = "", rest = "" } = {} }) => {
      const named = (resources as unknown as Readonly<Record<string, { plural: string } | undefined>>)[resource];
      const plurals = named ? [named.plural] : (BY_VARIABLE[file] ?? assert.fail(`${file}: what is ${resource}?`));
      const { subresource } = /subresource: "(?<subresource>\w+)"/.exec(rest)?.groups ?? {};
      return plurals.map((plural) => [`${VERBS[verb]} ${plural}`, ...(subresource ? [subresource] : [])].join("/"));
    },
  );
}

/** The rights that the calls in the files of a process use, but for those of a folder that has rights of its own. */
export async function findUsedRights(entry: string): Promise<Set<string>> {
  const options = {
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    write: false,
    outdir: "unused",
  } as const;
  const { metafile } = await build({ ...options, absWorkingDir: ROOT, entryPoints: [entry], metafile: true });
  return new Set(Object.keys(metafile.inputs).flatMap(rightsUsedIn));
}

export interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

interface Binding extends Manifest {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly name: string }[];
}

const FILES = [
  "functions/rbac",
  "reconciler/rbac",
  "certificates/rbac",
  "status-page/rbac",
  "prometheus-secrets/rbac",
  ...["agent", "api", "certificates", "reconciler"].map((part) => `node-updates/rbac-${part}`),
];
const RBAC = FILES.flatMap((file) => read(`infra/manifests/${file}.yaml`));

/** The rules of all Roles that are bound to a ServiceAccount. */
export function rulesBoundTo(account: string): readonly Rule[] {
  const bindings = RBAC.filter(({ kind }) => kind?.endsWith("RoleBinding")) as Binding[];
  const bound = bindings
    .filter(({ subjects }) => subjects.some(({ name }) => name === account))
    .map(({ roleRef }) => roleRef);
  return bound.flatMap(({ kind, name }) => {
    const role = RBAC.find((one) => one.kind === kind && one.metadata?.name === name) ?? assert.fail(`${kind} ${name}`);
    return role["rules"] as Rule[];
  });
}

export const rightsOf = (rule: Rule): string[] =>
  rule.verbs.flatMap((verb) => rule.resources.map((resource) => `${verb} ${resource}`));
