/** The manifests as they lie in the repository. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

export const ROOT = join(import.meta.dirname, "../..");

/** Whatever a manifest holds, read by paths. */
export interface Manifest {
  readonly kind?: string;
  readonly metadata?: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly [key: string]: unknown;
}

export function read(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(join(ROOT, file), "utf8")).map((document) => {
    assert.deepEqual(document.errors, [], file);
    return document.toJS() as Manifest;
  });
}

export function find(file: string, kind: string, name: string): Manifest {
  return (
    read(`infra/manifests/${file}`).find((one) => one.kind === kind && one.metadata?.name === name) ??
    assert.fail(`${kind} ${name} in ${file}`)
  );
}

/** Everything below `value` that `take` wants. */
export function collect<T>(value: unknown, take: (object: Readonly<Record<string, unknown>>) => T | undefined): T[] {
  if (typeof value !== "object" || value === null) return [];
  const own = take(value as Readonly<Record<string, unknown>>);
  return [...(own === undefined ? [] : [own]), ...Object.values(value).flatMap((below) => collect(below, take))];
}

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

export const rulesOf = (role: Manifest): readonly Rule[] => (role["rules"] ?? []) as readonly Rule[];

/** `verb resource[/subresource]`. */
export const rightsOf = ({ verbs, resources }: Rule): string[] =>
  verbs.flatMap((verb) => resources.map((resource) => `${verb} ${resource}`));

/** A registered webhook. */
interface Hook {
  readonly name: string;
  readonly path: string;
  readonly failurePolicy: string;
  readonly timeoutSeconds: number;
  readonly namespaceSelector?: object;
}

interface RegisteredHook extends Hook {
  readonly clientConfig: { readonly service: { readonly path: string } };
}

/** What is registered for each webhook of ours, by the name of its function. */
export const HOOKS: readonly Hook[] = globSync("infra/manifests/webhooks/*.yaml", { cwd: ROOT })
  .toSorted()
  .flatMap(read)
  .filter(({ kind }) => kind?.endsWith("WebhookConfiguration"))
  .flatMap(({ metadata, webhooks }) =>
    (webhooks as RegisteredHook[]).map((hook) => ({
      ...hook,
      name: metadata?.name?.replace(/-zonewise$/, "") ?? "",
      path: hook.clientConfig.service.path,
    })),
  );
