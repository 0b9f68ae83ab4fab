/** A row of the table of troubles, and how it is played: made, seen, cured by what is proposed, and seen no more. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { dig, isTrue, type KubeObject, plainText } from "../../emulator/objects.ts";
import { install, NAMESPACE, SETS, type Installation } from "./installation.ts";
import { changesIn, commandsIn, execute, looksIn, proposalsIn } from "./kubectl.ts";

/** Where the trouble is said. */
type Voice = "status" | "explain" | "doctor" | "page";

export interface Trouble {
  readonly trouble: string;
  /** More variables of the processes. */
  readonly env?: Readonly<Record<string, string>>;
  readonly make: (at: Installation) => unknown;
  /** Seconds of ticks until it is said; 10 by default. */
  readonly seenAfter?: number;
  /** What `explain` is asked about; the group by default. */
  readonly object?: string;
  readonly says: Readonly<Partial<Record<Voice, RegExp>>>;
  /** Of the Event: `Reason message`. */
  readonly event?: RegExp;
  readonly cure: Cure;
  /** StatefulSets whose template or replicas the cure is to change. */
  readonly changes?: readonly string[];
  /** Seconds of ticks until it is cured; 30 by default. */
  readonly curedAfter?: number;
}

interface Cure {
  /** Who proposes it; `explain` by default. */
  readonly by?: Voice;
  /** Chooses among the proposed commands; the first that changes something by default. */
  readonly takes?: RegExp;
  /** What the person writes in the editor that the command opens. */
  readonly edit?: (object: KubeObject) => object;
  /** What is said where no command can cure it, and what the person does who reads it. */
  readonly text?: RegExp;
  readonly does?: (at: Installation) => unknown;
}

/** Whether a command that we propose is the cure; otherwise a person does what is said. */
export const isByCommand = ({ cure }: Trouble): boolean => cure.text === undefined;

export async function play(t: TestContext, row: Trouble): Promise<void> {
  const at = await install(t, row.env);
  await row.make(at);
  await at.tickFor(row.seenAfter ?? 10);
  const seen = await listen(at, row);
  for (const [voice, says] of sentencesOf(row)) assert.match(seen[voice] ?? "", says, voice);
  if (row.event) assert.match(eventsOf(at), row.event);
  assert.deepEqual(
    commandsIn(Object.values(seen).join("\n")).filter((command) => /\b[A-Z]{3,}\b/.test(command)),
    [],
  );

  const before = { pods: healthyOf(at), sets: specsOf(at), errors: await errorsOf(at) };
  await cure(at, row, seen[row.cure.by ?? "explain"] ?? "");
  await at.stage.time.advance(200);
  const healthy = healthyOf(at);
  for (const [name, { uid }] of before.pods) assert.equal(healthy.get(name)?.uid, uid, `the cure has touched ${name}`);

  await at.tickFor(row.curedAfter ?? 30);
  const after = await listen(at, row);
  for (const [voice, says] of sentencesOf(row)) assert.doesNotMatch(after[voice] ?? "", says, `${voice}, cured`);
  assertUntouched(at, row, before);
  const made = (await errorsOf(at)).filter((error) => !before.errors.includes(error));
  assert.deepEqual(made, [], "the cure has made an error of doctor");
}

/** The errors of `doctor`, by object and check. */
async function errorsOf(at: Installation): Promise<string[]> {
  const found = JSON.parse((await at.run("doctor -o json")).out) as { level: string; object: string; check: string }[];
  return found.flatMap(({ level, object, check }) => (level === "error" ? [`${object} ${check}`] : []));
}

const sentencesOf = ({ says }: Trouble): [Voice, RegExp][] => Object.entries(says) as [Voice, RegExp][];

/** What each voice says now, that of the cure and those of the row. */
async function listen(at: Installation, row: Trouble): Promise<Partial<Record<Voice, string>>> {
  const { object = "group/ingester" } = row;
  const ask: Readonly<Record<Voice, () => Promise<string>>> = {
    status: async () => (await at.run("status --no-watch")).out,
    explain: async () => (await at.run(`explain ${object}`)).out,
    doctor: async () => (await at.run("doctor")).out,
    page: at.page,
  };
  const voices = new Set([...sentencesOf(row).map(([voice]) => voice), row.cure.by ?? "explain"]);
  const said: Partial<Record<Voice, string>> = {};
  for (const voice of voices) said[voice] = await ask[voice]();
  return said;
}

/** Does what is proposed: by a command of the output itself, or as the person who reads it. */
async function cure(at: Installation, { cure, changes = [] }: Trouble, said: string): Promise<void> {
  const { takes, edit, text, does } = cure;
  const proposed = proposalsIn(said).join("\n");
  const shell = { stage: at.stage, run: at.run, edit };
  for (const command of looksIn(proposed)) await execute(command, shell);
  if (text) {
    assert.match(proposed, text);
    await does?.(at);
    return;
  }
  const commands = changesIn(proposed);
  const command =
    (takes ? commands.find((one) => takes.test(one)) : commands[0]) ??
    assert.fail(`no such command is proposed:\n${said}`);
  const written = await noteWrites(at, () => execute(command, shell));
  assert.ok(written.length > 0, `${command} has written nothing`);
  // A folder has many objects; of what runs, it has none.
  const meant = command.includes(" apply -k ") ? written.filter(({ resource }) => RUNNING.has(resource)) : written;
  const stray = meant.filter(({ name }) => !isNamed(name, command) && !changes.includes(name));
  assert.deepEqual(stray, [], `${command} has changed what it does not name`);
}

/** A command names an object, the StatefulSet of a pod in a selector, or to us the group of zones. */
function isNamed(name: string, command: string): boolean {
  const words = command.split(/[\s'"=,/{}]+/);
  const isSet = (word: string): boolean => command.startsWith("zonewise ") || /-zone-[a-z]$/.test(word);
  return words.some((word) => name === word || (isSet(word) && name.startsWith(`${word}-`)));
}

/** Resources of what users run, and of what guards it. */
const RUNNING: ReadonlySet<string> = new Set([
  "pods",
  SETS,
  "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com",
  "rolloutgates.zonewise.dev",
  "phasedrollouts.sts.plus",
]);

interface Written {
  readonly resource: string;
  readonly name: string;
}

/** The objects that were made, removed, or got another content than their status while `work` went on. */
async function noteWrites({ stage }: Installation, work: () => Promise<void>): Promise<Written[]> {
  const written: Written[] = [];
  const unsubscribe = stage.emulator.store.subscribe(({ type, resource, object, previous }) => {
    const isSame = type === "MODIFIED" && contentOf(object) === contentOf(previous);
    if (!isSame && !BY_THE_WAY.has(resource)) written.push({ resource, name: object.metadata.name });
  });
  await work().finally(unsubscribe);
  return written;
}

/** What the API server and our processes write beside each change. */
const BY_THE_WAY: ReadonlySet<string> = new Set(["events", "leases.coordination.k8s.io"]);

function contentOf(object: KubeObject | undefined): string {
  const { metadata, status: _, ...content }: Partial<KubeObject> = object ?? {};
  const { labels, annotations, finalizers, deletionTimestamp } = metadata ?? {};
  return JSON.stringify([labels, annotations, finalizers, deletionTimestamp, content]);
}

interface Healthy {
  readonly uid: string;
  readonly revision: unknown;
}

const REVISION = "controller-revision-hash";

/** The pods of StatefulSets that are ready and stay. */
function healthyOf({ stage }: Installation): ReadonlyMap<string, Healthy> {
  const pods = stage.emulator.store.list("pods", NAMESPACE);
  const healthy = pods.filter(
    (pod) => isTrue(pod, "Ready") && pod.metadata.ownerReferences && pod.metadata.deletionTimestamp === undefined,
  );
  return new Map(healthy.map(({ metadata: { name, uid, labels } }) => [name, { uid, revision: labels?.[REVISION] }]));
}

/** Template and replicas of each StatefulSet. */
function specsOf({ stage }: Installation): ReadonlyMap<string, string> {
  return new Map(
    stage.emulator.store
      .list(SETS, NAMESPACE)
      .map(({ metadata: { name }, spec }) => [name, JSON.stringify([dig(spec, "template"), dig(spec, "replicas")])]),
  );
}

/** False for a pod beyond the replicas of its StatefulSet. */
function isWanted({ stage }: Installation, pod: string): boolean {
  const [, set = "", ordinal = ""] = /^(.*)-(\d+)$/.exec(pod) ?? [];
  const replicas = dig(stage.emulator.store.get(SETS, NAMESPACE, set), "spec", "replicas");
  return Number(ordinal) < Number(replicas);
}

interface Before {
  readonly pods: ReadonlyMap<string, Healthy>;
  readonly sets: ReadonlyMap<string, string>;
}

/** Pods that were healthy and of the template that is wanted are the same, and so is every other zone. */
function assertUntouched(at: Installation, { changes = [] }: Trouble, { pods, sets }: Before): void {
  const { store } = at.stage.emulator;
  const now = healthyOf(at);
  const revisions = new Set(store.list(SETS, NAMESPACE).map(({ status }) => dig(status, "updateRevision")));
  for (const [name, { uid, revision }] of pods)
    if (revisions.has(revision) && isWanted(at, name))
      assert.equal(now.get(name)?.uid, uid, `${name} was replaced, which was healthy`);
  const left = (specs: ReadonlyMap<string, string>) => [...specs].filter(([name]) => !changes.includes(name));
  assert.deepEqual(left(specsOf(at)), left(sets));
}

const eventsOf = ({ stage }: Installation): string =>
  stage.emulator.store
    .list("events", NAMESPACE)
    .map((event) => `${plainText(event["reason"])} ${plainText(event["message"])}`)
    .join("\n");
