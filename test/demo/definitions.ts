/**
 * The definitions that the embedded cluster gets, to create before the reconciler starts: one that is missing is looked
 * for again only after minutes.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import type { Draft } from "../emulator/objects.ts";
import type { Store } from "../emulator/store.ts";

const FOLDER = join(import.meta.dirname, "../../infra/manifests/crds");

/** `plurals` of `infra/manifests/crds`. */
export async function define(store: Store, plurals: readonly string[]): Promise<void> {
  for (const plural of plurals) {
    const definition = parse(await readFile(join(FOLDER, `${plural}.yaml`), "utf8")) as Draft;
    store.create("customresourcedefinitions.apiextensions.k8s.io", definition);
  }
}
