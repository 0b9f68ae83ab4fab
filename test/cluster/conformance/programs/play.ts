/** Plays a program in a namespace of its own, and records what came of each step. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Fields, type KubeObject, dig, fieldsOf, listOf } from "../../../emulator/objects.ts";
import { SOME_TIME_MS } from "../../stage/until.ts";
import type { Answer, Client, WatchEvent } from "../client.ts";
import { createNormaliser } from "../normalise.ts";
import { at, del, patch, post } from "../requests.ts";
import type { Entry } from "../stage.ts";
import { type Call, type Program, type Sight, describeStep, requestOf } from "./program.ts";

interface Watched extends Sight {
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

async function watchNamespace(client: Client, namespace: string, plurals: readonly string[]): Promise<Watched> {
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

interface Settling {
  readonly watched: Watched;
  readonly record: () => Entry;
  /** The step's position; -1 before the first. */
  readonly at: number;
  /** Whether the watches have told of what the step wrote itself. */
  readonly isSeen: () => boolean;
}

/** A cluster that a program is played on. */
export interface Ground {
  readonly client: Client;
  /** Resolves once nothing moves any more: `record` is what was seen so far, `at` the step. */
  readonly settle: (settling: Settling) => Promise<void>;
}

export interface Played {
  readonly entries: readonly Entry[];
  readonly calls: number;
}

/** A name that was generated for an object that was refused. */
const GENERATED = /\b(z-\d\d-)[a-z\d]{5}\b/g;

/** Stops after the first step of which `mayGoOn` is false. */
export async function play(
  { client, settle }: Ground,
  { program, plurals }: { readonly program: Program; readonly plurals: readonly string[] },
  {
    namespace,
    mayGoOn = () => true,
  }: { readonly namespace: string; readonly mayGoOn?: (entry: Entry, at: number) => boolean },
): Promise<Played> {
  await client.call(post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }));
  await rootCertificate(client, namespace);
  const watched = await watchNamespace(client, namespace, plurals);
  const names = new Map([[namespace, "<namespace>"]]);
  const named = createNormaliser(names, (uid) => `<uid of ${watched.nameOf(uid) ?? "nothing"}>`);
  const normalise = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(named(value)).replaceAll(GENERATED, "$1*****"));
  const entries: Entry[] = [];
  let calls = 0;
  try {
    await settle({ watched, record: () => ({ step: "" }), at: -1, isSeen: () => true });
    for (const [index, step] of program.entries()) {
      const requests = step.map((call) => requestOf(call, watched));
      calls += requests.length;
      const versions = new Map([...watched.objects()].map(([path, { metadata }]) => [path, metadata.resourceVersion]));
      const answers = await Promise.all(requests.map((request) => client.call(request)));
      for (const [nth, call] of step.entries()) noteNames(watched, names, call, answers[nth]);
      let order: string[] = [];
      const record = (): Entry => {
        order = [...order, ...watched.takeOrder()];
        const results = step.map((call, nth) => resultOf(call, answers[nth], versions));
        const [first] = results;
        return {
          step: `${index}: ${describeStep(step)}`,
          // Which of several calls wins is chance.
          ...(step.length === 1 && first ? { status: first.status } : {}),
          result: normalise({
            answer:
              step.length === 1
                ? first?.answer
                : results.map(({ status, reason }) => [status, reason].join(" ")).toSorted(),
            objects: Object.fromEntries([...watched.objects()].map(([path, object]) => [path, comparable(object)])),
            order: orderOf(watched, order),
          }),
        };
      };
      const isSeen = (): boolean =>
        step.every(({ path }, nth) => watched.newest(path.split("/")[0] ?? "") >= writtenBy(answers[nth]));
      await settle({ watched, record, at: index, isSeen });
      const entry = record();
      entries.push(entry);
      if (!mayGoOn(entry, index)) break;
    }
    if (entries.length === program.length) entries.push({ step: "the end", result: normalise(watched.histories()) });
  } finally {
    watched.stop();
  }
  return { entries, calls };
}

/** The answer, and whether the object has another resourceVersion now than was seen before the call. */
function resultOf({ method, path }: Call, answer: Answer | undefined, versions: ReadonlyMap<string, string>) {
  const body = fieldsOf(answer?.body);
  const before = versions.get(path.split("/").slice(0, 2).join("/"));
  const isWrite = (method === "PUT" || method === "PATCH") && (answer?.status ?? 0) < 400;
  return {
    status: answer?.status ?? 0,
    reason: body["reason"],
    answer: {
      ...(body["reason"] === "Invalid" ? { invalid: faultsOf(body) } : { body }),
      ...(isWrite && { changed: dig(body, "metadata", "resourceVersion") !== before }),
      warnings: answer?.headers["warning"],
    },
  };
}

/** How ready a pod was when it began to go depends on the speed of controllers. */
function comparable(object: KubeObject): object {
  const { status, ...rest } = object;
  return object.kind === "Pod" && object.metadata.deletionTimestamp !== undefined
    ? rest
    : { ...rest, ...(status !== undefined && { status }) };
}

/** The resourceVersion of an object that was answered; 0 for lists, which have the version of all kinds. */
function writtenBy(answer: Answer | undefined): number {
  const isObject = dig(answer?.body, "metadata", "uid") !== undefined;
  return isObject ? Number(dig(answer?.body, "metadata", "resourceVersion") ?? 0) : 0;
}

/** What was refused as invalid: several faults have no order. */
function faultsOf({ details, ...body }: Fields): object {
  const { message: _words, ...rest } = body;
  const faults = listOf(dig(details, "causes")).map(
    (cause) => [String(dig(cause, "field")), [dig(cause, "reason"), dig(cause, "message")].join(": ")] as const,
  );
  return { ...rest, details: { ...fieldsOf(details), causes: Object.fromEntries(faults) } };
}

/** Names that the server generated, and tokens of lists, which later calls refer to. */
function noteNames(
  watched: Watched,
  names: Map<string, string>,
  { path, method }: Call,
  answer: Answer | undefined,
): void {
  const prefix = dig(answer?.body, "metadata", "generateName");
  const name = dig(answer?.body, "metadata", "name");
  if (method === "POST" && typeof prefix === "string" && typeof name === "string" && answer?.status === 201) {
    names.set(name, `<${prefix} ${names.size}>`);
    watched.note("generated", prefix, name);
  }
  const token = dig(answer?.body, "metadata", "continue");
  if (method === "GET" && typeof token === "string") watched.note("continued", path, token);
}

/** Only pods that are made one after the other have an order that two clusters share. */
function orderOf(watched: Watched, order: readonly string[]): unknown {
  const groups = Map.groupBy(order, (entry) => entry.slice(2).replace(/(?<!^z-\d\d)-\d+$/, ""));
  return Object.fromEntries(
    [...groups].map(([set, changes]) => {
      const owner = watched.objects().get(`statefulsets/${set}`);
      const isOrdered = owner && dig(owner, "spec", "podManagementPolicy") === "OrderedReady";
      return [set, isOrdered ? changes : changes.toSorted()];
    }),
  );
}

/** Waits for the ConfigMap that a real cluster makes in every namespace. */
async function rootCertificate(client: Client, namespace: string): Promise<void> {
  for (const end = performance.now() + SOME_TIME_MS; performance.now() < end; await sleep(20)) {
    const path = `/api/v1/namespaces/${namespace}/configmaps/kube-root-ca.crt`;
    if ((await client.call({ method: "GET", path })).status === 200) return;
  }
  throw new Error(`the cluster does not publish its CA in ${namespace}`);
}

/** Deletes the namespace, and what holds its objects. */
export async function clear(client: Client, namespace: string, plurals: readonly string[]): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}`;
  await client.call(del(path));
  for (const plural of plurals) {
    const all = at(namespace, plural);
    const { body } = await client.call({ method: "GET", path: all });
    for (const item of listOf(dig(body, "items"))) {
      const one = `${all}/${String(dig(item, "metadata", "name"))}`;
      if (dig(item, "metadata", "finalizers") !== undefined)
        await client.call(patch(one, { metadata: { finalizers: null } }));
      if (plural === "pods") await client.call(del(one, { gracePeriodSeconds: 0 }));
    }
  }
}
