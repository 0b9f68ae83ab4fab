/** Rewrites files of the product as they are loaded. */
import { type LoadHookSync, registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { mutate, type Mutation } from "../mutation/mutation.ts";

/** The text of a file as it is to be loaded, from its path and its text. */
type Rewrite = (path: string, source: string) => string;

const ROOT = `${pathToFileURL(join(import.meta.dirname, "../..")).href}/`;
const rewrites: Rewrite[] = [];

/** For all that is imported from now on. */
export function rewriteOnLoad(rewrite: Rewrite): void {
  if (rewrites.push(rewrite) === 1) registerHooks({ load: loadRewritten });
}

/** One text of each for another. What is not in its file exactly once throws as the file is loaded. */
export function changeOnLoad(changes: readonly Pick<Mutation, "file" | "find" | "replacement">[]): void {
  const changesOf = Map.groupBy(changes, ({ file }) => file);
  rewriteOnLoad((path, source) =>
    (changesOf.get(path) ?? []).reduce((text, change) => {
      const changed = mutate(text, change);
      if (changed === undefined) throw new Error(`not once in ${path}: ${change.find}`);
      return changed;
    }, source),
  );
}

const loadRewritten: LoadHookSync = (url, context, next) => {
  const loaded = next(url, context);
  const path = url.startsWith(ROOT) ? url.slice(ROOT.length) : "";
  if (!/^(?:functions|reconciler|infra)\//.test(path)) return loaded;
  const source = rewrites.reduce(
    (text, rewrite) => rewrite(path, text),
    new TextDecoder().decode(loaded.source as Uint8Array),
  );
  return { ...loaded, source: new TextEncoder().encode(source) };
};
