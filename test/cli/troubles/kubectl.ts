/** The commands that we propose: found in what we say, and executed against the embedded cluster. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Resource } from "../../../infra/kubernetes/resources.ts";
import { withDefaults } from "../../emulator/defaults.ts";
import type { Draft, KubeObject } from "../../emulator/objects.ts";
import type { Stage } from "../../reconciler/stage.ts";
import type { Terminal } from "../stage.ts";

const ROOT = join(import.meta.dirname, "../../..");

/** What `explain`, `doctor` and the first lines of every command propose. */
export const proposalsIn = (said: string): string[] =>
  [...said.matchAll(/^ +fix:?(?: +.*)?$(?:\n {6,}\S.*)*|^ {7}\S.*(?:\n {7,}\S.*)*/gm)].map(([text]) => text);

/** `kubectl …`, `zonewise …`, `echo … | kubectl …`, or several with `&&`; `;`, a bracket and a comma end a command in a sentence. */
const COMMAND =
  /\b(?:echo '[^']*' \| )?(?:kubectl|zonewise)(?: (?:'[^']*'|(?!&&)[^\s;()']*[^\s;,()'])+(?![^\s;,)])| && (?:kubectl|zonewise))+/g;

export const commandsIn = (text: string): string[] => [...text.matchAll(COMMAND)].map(([command]) => command);

/** Commands that only show something. */
const isLook = (command: string): boolean =>
  / (?:get|describe|logs) /.test(command) || /^zonewise .*\b(?:history|status|explain|drain-order)\b/.test(command);

export const changesIn = (text: string): string[] => commandsIn(text).filter((command) => !isLook(command));
export const looksIn = (text: string): string[] => commandsIn(text).filter(isLook);

interface ShellOptions {
  readonly stage: Stage;
  readonly run: Terminal["run"];
  /** What the person does in the editor that `kubectl edit` opens. */
  readonly edit?: ((object: KubeObject) => object) | undefined;
  /** What is piped into the command. */
  readonly input?: Draft;
}

/** Executes one of the commands; throws what the API server refuses, and for a form that it does not know. */
export async function execute(text: string, options: ShellOptions): Promise<void> {
  const [, written, creation = ""] = /^echo '([^']*)' \| (kubectl .*)$/.exec(text) ?? [];
  if (written !== undefined)
    return await kubectl(wordsOf(creation).slice(1), { ...options, input: JSON.parse(written) as Draft });
  for (const one of text.split(" && ")) {
    const [program, ...words] = wordsOf(one);
    if (program === "kubectl") await kubectl(words, options);
    else {
      const { code, out, err } = await options.run(words.join(" "));
      assert.equal(code, 0, `${one}: ${out}${err}`);
    }
  }
}

const wordsOf = (text: string): string[] =>
  [...text.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ""));

interface Invocation extends ShellOptions {
  readonly cluster: Cluster;
  /** Without flags. */
  readonly words: readonly string[];
  readonly flags: ReadonlyMap<string, string>;
  readonly namespace: string;
}

const WITH_VALUE = new Set(["-n", "-p", "-k", "-f", "-l", "-o", "--field-selector", "--type", "--tail", "--replicas"]);

async function kubectl(given: readonly string[], options: ShellOptions): Promise<void> {
  const flags = new Map<string, string>();
  const words: string[] = [];
  for (let i = 0; i < given.length; i++) {
    const [name = "", value] = (given[i] ?? "").split(/=(.*)/s);
    if (!name.startsWith("-") || name === "-") words.push(given[i] ?? "");
    else flags.set(name, value ?? (WITH_VALUE.has(name) ? (given[++i] ?? "") : ""));
  }
  const [verb = "", ...rest] = words;
  const play = VERBS[verb] ?? assert.fail(`nobody plays: kubectl ${given.join(" ")}`);
  const { cluster } = options.stage.connect();
  await play({ ...options, cluster, words: rest, flags, namespace: flags.get("-n") ?? "default" });
}

type Play = (invocation: Invocation) => Promise<void>;

const VERBS: Readonly<Record<string, Play>> = {
  annotate: (invocation) => changeStrings(invocation, "annotations"),
  label: (invocation) => changeStrings(invocation, "labels"),
  patch: async (invocation) => {
    const { cluster, flags } = invocation;
    const type = (flags.get("--type") ?? "strategic") as "merge" | "strategic";
    for (const { resource, ref } of findNamed(invocation))
      await cluster.patch(resource, { ...ref, type, body: JSON.parse(flags.get("-p") ?? "") });
  },
  scale: async (invocation) => {
    const body = { spec: { replicas: Number(invocation.flags.get("--replicas")) } };
    for (const { resource, ref } of findNamed(invocation))
      await invocation.cluster.patch(resource, { ...ref, type: "merge", body });
  },
  delete: async (invocation) => {
    const { cluster } = invocation;
    for (const { resource, ref, object } of findNamed(invocation))
      await cluster.remove(resource, { ...ref, preconditions: { uid: object.metadata.uid } });
  },
  edit: async (invocation) => {
    const { cluster, edit = () => assert.fail("nobody says what to write in the editor") } = invocation;
    for (const { resource, ref, object } of findNamed(invocation))
      await cluster.replace(resource, { ...ref, body: edit(structuredClone(object)) });
  },
  create: async (invocation) => {
    const { cluster, input = assert.fail("nothing is piped into it"), flags, namespace } = invocation;
    assert.equal(flags.get("-f"), "-");
    await cluster.create(findResource(invocation, input.kind), { namespace, body: input });
  },
  apply: async ({ stage, flags, namespace }) => await applyFolder(stage, flags.get("-k") ?? assert.fail(), namespace),
  get: look,
  describe: look,
  logs: async (invocation) =>
    void findNamed({
      ...invocation,
      words: invocation.words.map((word) => (word.includes("/") ? word : `pod/${word}`)),
    }),
};

/** What it names is there. */
async function look(invocation: Invocation): Promise<void> {
  const [kinds = "", ...names] = invocation.words;
  for (const kind of kinds.split(","))
    if (kind.includes("/") || names.length > 0) findNamed(invocation);
    else findResource(invocation, kind);
}

interface Named {
  readonly resource: Resource<object>;
  readonly ref: { readonly namespace?: string; readonly name: string };
  readonly object: KubeObject;
}

/** As discovery tells kubectl: by plural, singular, short name. */
function findResource({ stage }: ShellOptions, word: string) {
  const { registry } = stage.emulator;
  const kind = registry
    .all()
    .find(({ plural, singular, shortNames }) => [plural, singular, ...shortNames].includes(word.toLowerCase()));
  return kind ?? assert.fail(`the server has no resource type ${word}`);
}

/** `KIND NAME…` or `KIND/NAME…`; fails for what does not exist. */
function findNamed(invocation: Invocation): Named[] {
  const { words, namespace, stage } = invocation;
  const [first = "", ...rest] = [...words.filter((word) => !isChange(word)), ...findSelected(invocation)];
  const pairs = first.includes("/")
    ? [first, ...rest].map((word) => word.split("/"))
    : rest.map((name) => [first, name]);
  assert.notEqual(pairs.length, 0, `it names no object: ${words.join(" ")}`);
  return pairs.map(([word = "", name = ""]) => {
    const { resource: key, group, version, plural, namespaced } = findResource(invocation, word);
    const object = stage.emulator.store.get(key, namespaced ? namespace : undefined, name);
    const ref = { ...(namespaced && { namespace }), name };
    return { resource: { group, version, plural }, ref, object: object ?? assert.fail(`there is no ${word} ${name}`) };
  });
}

/** The names of the pods that `-l key=value` selects. */
function findSelected({ flags, namespace, stage, words: [kind] }: Invocation): string[] {
  const [key = "", value] = flags.get("-l")?.split("=") ?? [];
  if (value === undefined || kind !== "pods") return [];
  const { store } = stage.emulator;
  return store
    .list("pods", namespace)
    .flatMap(({ metadata }) => (metadata.labels?.[key] === value ? [metadata.name] : []));
}

/** `key=value`, or `key-`. */
const isChange = (word: string): boolean => /^[\w./-]+=|-$/.test(word);

async function changeStrings(invocation: Invocation, field: "annotations" | "labels"): Promise<void> {
  const strings = Object.fromEntries(
    invocation.words.filter(isChange).map((word) => {
      const [key = "", value] = word.split(/=(.*)/s);
      return value === undefined ? [key.slice(0, -1), null] : [key, value];
    }),
  );
  for (const { resource, ref } of findNamed(invocation))
    await invocation.cluster.patch(resource, { ...ref, type: "merge", body: { metadata: { [field]: strings } } });
}

const folders = new Map<string, readonly Draft[]>();

/** The objects of a kustomization, without its transformations. */
function readFolder(path: string): readonly Draft[] {
  const known = folders.get(path);
  if (known) return known;
  const { resources } = parse(readFileSync(join(path, "kustomization.yaml"), "utf8")) as { resources: string[] };
  const found = resources.flatMap((resource): readonly Draft[] => {
    const file = join(path, resource);
    if (!file.endsWith(".yaml")) return readFolder(file);
    return parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.toJS() as Draft);
  });
  folders.set(path, found);
  return found;
}

/** The namespace of webhook configurations, in their names, services and selectors. */
const PLACE = /(?<="|-)zonewise(?="|\.grafana)/g;

/** Kinds that the embedded cluster does not serve, and that nothing here depends on. */
const NOT_SERVED = /AdmissionPolicy|NetworkPolicy/;

/** `kubectl apply -k`, with the namespace said where docs/start/install.md has it said. */
export async function applyFolder(stage: Stage, path: string, namespace: string): Promise<void> {
  const { registry, store } = stage.emulator;
  for (const draft of readFolder(join(ROOT, path))) {
    if (NOT_SERVED.test(draft.kind)) continue;
    const placed = JSON.parse(JSON.stringify(draft).replaceAll(PLACE, namespace)) as Draft;
    const kind = registry.all().find((one) => one.kind === draft.kind) ?? assert.fail(`no kind ${draft.kind}`);
    const metadata = { ...placed.metadata, ...(kind.namespaced && { namespace }) };
    const earlier = store.get(kind.resource, metadata.namespace, metadata.name ?? "");
    if (!earlier) store.create(kind.resource, withDefaults(kind.resource, { ...placed, metadata }));
    else if (kind.kind !== "Secret")
      store.update(kind.resource, { ...earlier, ...placed, metadata: { ...earlier.metadata, ...metadata } });
  }
}
