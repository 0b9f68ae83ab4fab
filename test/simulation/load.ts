/** Changes files of the product as they are loaded: one text of each for another. */
import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { mutate, type Mutation } from "../mutation/mutation.ts";

export type Change = Pick<Mutation, "file" | "find" | "replacement">;

/** What was loaded in place of a file, by its URL. */
export const changedSources = new Map<string, string>();

const ROOT = join(import.meta.dirname, "../..");

/** For all that is imported from now on. What is not in its file exactly once throws as the file is loaded. */
export function changeOnLoad(changes: readonly Change[]): void {
  const byUrl = Map.groupBy(changes, ({ file }) => pathToFileURL(join(ROOT, file)).href);
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      const own = byUrl.get(url);
      if (!own) return loaded;
      let source = new TextDecoder().decode(loaded.source as Uint8Array);
      for (const change of own) {
        const changed = mutate(source, change);
        if (changed === undefined) throw new Error(`not once in ${change.file}: ${change.find}`);
        source = changed;
      }
      changedSources.set(url, source);
      return { ...loaded, source: new TextEncoder().encode(source) };
    },
  });
}
