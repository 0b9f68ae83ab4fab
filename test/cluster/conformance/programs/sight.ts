/** What watches tell of a namespace while a program is played. */
import { dig, type KubeObject } from "../../../emulator/objects.ts";
import type { Client, WatchEvent } from "../client.ts";
import { at } from "../requests.ts";
import type { Sight } from "./program.ts";

export interface Watched extends Sight {
  /** The objects that are there, by path. */
  readonly objects: () => ReadonlyMap<string, KubeObject>;
  /** The name of each UID: the path, and which of this name it is. */
  readonly nameOf: (uid: string) => string | undefined;
  /** For each object that was ever there what became of it, by path and number. */
  readonly histories: () => Readonly<Record<string, readonly string[]>>;
  /** The pods that came and began to go, in this order, since the last call. */
  readonly takeOrder: () => string[];
  readonly follows: (plural: string) => boolean;
  /** The newest resourceVersion of an event of this kind. */
  readonly newest: (plural: string) => number;
  /** Notes the name that was generated for a prefix, or the token of a list. */
  readonly note: (kind: "generated" | "continued", key: string, value: string) => void;
  /** Calls it after each event. */
  readonly onEvent: (run: () => void) => void;
  readonly stop: () => void;
}

/** Made by the cluster itself in every namespace, and Events that controllers write. */
const isForeign = (plural: string, { metadata, ...rest }: KubeObject): boolean =>
  metadata.name === "kube-root-ca.crt" || (plural === "events" && dig(rest, "source", "component") !== "programs");

/** Controllers and kubelets write these in as many steps as their speed allows. */
const CONTROLLED: ReadonlySet<string> = new Set([
  "pods",
  "statefulsets",
  "poddisruptionbudgets",
  "controllerrevisions",
]);

export async function watchNamespace(client: Client, namespace: string, plurals: readonly string[]): Promise<Watched> {
  const objects = new Map<string, KubeObject>();
  const versions = new Map<string, string[]>();
  const uids = new Map<string, string[]>();
  const histories = new Map<string, string[]>();
  const newest = new Map<string, number>();
  const notes = new Map<string, string>();
  const leaving = new Set<string>();
  let order: string[] = [];
  let listener = (): void => {};

  const numberOf = (path: string, uid: string): string => {
    const known = uids.get(path) ?? [];
    uids.set(path, known);
    if (!known.includes(uid)) known.push(uid);
    return `${path} #${known.indexOf(uid) + 1}`;
  };

  function see(plural: string, { type, object: seen }: WatchEvent): void {
    const object = seen as unknown as KubeObject;
    if (type === "BOOKMARK" || type === "ERROR") return;
    const { name, uid, resourceVersion, deletionTimestamp } = object.metadata;
    newest.set(plural, Math.max(newest.get(plural) ?? 0, Number(resourceVersion)));
    if (isForeign(plural, object)) return;
    const path = `${plural}/${name}`;
    const history = histories.get(numberOf(path, uid)) ?? [];
    histories.set(numberOf(path, uid), history);
    const state = CONTROLLED.has(plural) ? stateOf(type, object) : type;
    if (!CONTROLLED.has(plural) || history.at(-1) !== state) history.push(state);
    if (type === "ADDED") versions.set(path, []);
    versions.get(path)?.push(resourceVersion);
    if (plural === "pods" && type === "ADDED") order.push(`+ ${name}`);
    if (plural === "pods" && (deletionTimestamp !== undefined || type === "DELETED") && !leaving.has(uid)) {
      leaving.add(uid);
      order.push(`- ${name}`);
    }
    if (type === "DELETED") objects.delete(path);
    else objects.set(path, object);
    listener();
  }

  const watches = await Promise.all(
    plurals.map((plural) => client.watch({ path: `${at(namespace, plural)}?watch=1` }, (event) => see(plural, event))),
  );
  return {
    namespace,
    object: (path) => objects.get(path),
    versions: (path) => (objects.has(path) ? (versions.get(path) ?? []) : []),
    uids: (path) => uids.get(path) ?? [],
    continued: (plural) => notes.get(`continued ${plural}`) ?? "",
    generated: (prefix) => notes.get(`generated ${prefix}`) ?? `${prefix}none`,
    note: (kind, key, value) => void notes.set(`${kind} ${key}`, value),
    objects: () => objects,
    nameOf: (uid) => {
      const path = [...uids.keys()].find((known) => uids.get(known)?.includes(uid));
      return path === undefined ? undefined : numberOf(path, uid);
    },
    histories: () => Object.fromEntries(histories),
    takeOrder: () => {
      const taken = order;
      order = [];
      return taken;
    },
    follows: (plural) => plurals.includes(plural),
    newest: (plural) => newest.get(plural) ?? 0,
    onEvent: (run) => (listener = run),
    stop: () => {
      for (const { stop } of watches) stop();
    },
  };
}

/** How ready a pod became before it went depends on the speed of controllers. */
function stateOf(type: string, { metadata }: KubeObject): string {
  if (type === "DELETED") return "gone";
  return metadata.deletionTimestamp === undefined ? "there" : "terminating";
}
