/** Changes files of the product as they are loaded. */
import { type LoadHookSync, registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { mutate, type Mutation } from "../mutation/mutation.ts";

type Change = Pick<Mutation, "file" | "find" | "replacement">;

/** What was loaded in place of a file, by its URL. */
export const changedSources = new Map<string, string>();

/** What is changed of each file, by its URL, in this order. */
const changesOf = new Map<string, readonly Change[]>();

const ROOT = join(import.meta.dirname, "../..");

/** One text of each for another, for all that is imported from now on. What is not in its file exactly once throws as the file is loaded. */
export function changeOnLoad(changes: readonly Change[]): void {
  if (changesOf.size === 0) registerHooks({ load: loadChanged });
  for (const change of changes) {
    const url = pathToFileURL(join(ROOT, change.file)).href;
    changesOf.set(url, [...(changesOf.get(url) ?? []), change]);
  }
}

const loadChanged: LoadHookSync = (url, context, next) => {
  const loaded = next(url, context);
  const changes = changesOf.get(url);
  if (!changes) return loaded;
  const source = changes.reduce(
    (text, change) => {
      const changed = mutate(text, change);
      if (changed === undefined) throw new Error(`not once in ${change.file}: ${change.find}`);
      return changed;
    },
    new TextDecoder().decode(loaded.source as Uint8Array),
  );
  changedSources.set(url, source);
  return { ...loaded, source: new TextEncoder().encode(source) };
};
