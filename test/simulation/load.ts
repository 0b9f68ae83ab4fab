/** Changes files of the product as they are loaded. */
import { type LoadHookSync, registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { mutate, type Mutation } from "../mutation/mutation.ts";

export type Change = Pick<Mutation, "file" | "find" | "replacement">;

interface Loaded {
  readonly source: string;
  /** As Node.js calls it: that of the file unless it is given. */
  readonly format?: "module";
}

/** What was loaded in place of a file, by its URL. */
export const changedSources = new Map<string, string>();

/** What is changed of each file, by its URL, in this order. */
const changesOf = new Map<string, ((source: string) => Loaded)[]>();

const ROOT = join(import.meta.dirname, "../..");

/** One text of each for another, for all that is imported from now on. What is not in its file exactly once throws as the file is loaded. */
export function changeOnLoad(changes: readonly Change[]): void {
  for (const [file, own] of Map.groupBy(changes, (change) => change.file))
    changeSources(file, (source) => ({
      source: own.reduce((text, change) => {
        const changed = mutate(text, change);
        if (changed === undefined) throw new Error(`not once in ${file}: ${change.find}`);
        return changed;
      }, source),
    }));
}

/** The whole source of a file for another, if it is imported from now on. */
export function changeSources(file: string, change: (source: string) => Loaded): void {
  if (changesOf.size === 0) registerHooks({ load: loadChanged });
  const url = pathToFileURL(join(ROOT, file)).href;
  changesOf.set(url, [...(changesOf.get(url) ?? []), change]);
}

const loadChanged: LoadHookSync = (url, context, next) => {
  const loaded = next(url, context);
  const changes = changesOf.get(url);
  if (!changes) return loaded;
  let source = new TextDecoder().decode(loaded.source as Uint8Array);
  let { format } = loaded;
  for (const change of changes) {
    const changed = change(source);
    source = changed.source;
    format = changed.format ?? format;
  }
  changedSources.set(url, source);
  return { ...loaded, format, source: new TextEncoder().encode(source) };
};
