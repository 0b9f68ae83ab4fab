/** Labels and annotations that are nearly ones of ours, or stand in the place of the other: nobody reads them. Pure. */
import { countEdits } from "../../../infra/edit-distance.ts";
import { RETRY_ANNOTATION } from "../../../reconciler/gates/gate.ts";
import { ANNOTATIONS, LABELS } from "../../../reconciler/model/annotations.ts";
import { how, kubectl } from "../../../reconciler/model/remedy.ts";
import { type Check, edit, type DoctorFacts, type Keyed, row } from "./check.ts";

type Strings = Readonly<Record<string, string>>;

interface Known {
  readonly key: string;
  readonly as: "label" | "annotate";
}

/** Every key that users write. Kubernetes writes the revision. */
const KNOWN: readonly Known[] = [
  ...Object.values(LABELS)
    .filter((key) => key !== LABELS.revision)
    .map((key) => ({ key, as: "label" }) as const),
  ...[...Object.values(ANNOTATIONS), RETRY_ANNOTATION].map((key) => ({ key, as: "annotate" }) as const),
];
const KNOWN_KEYS: ReadonlySet<string> = new Set([...KNOWN.map(({ key }) => key), LABELS.revision]);

const split = (key: string): readonly [prefix: string, name: string] =>
  key.includes("/") ? [key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1)] : ["", key];
/** The API group of the original's definitions is not the prefix of its keys. */
const OUR_PREFIXES: ReadonlySet<string> = new Set([
  ...KNOWN.map(({ key }) => split(key)[0]),
  "rollout-operator.grafana.com",
]);

/** Shorter names, such as `pause`, are anybody's where they have no prefix. */
const LEAST_BARE = 8;
const MOST_IN_PREFIX = 2;

/** How far a key is from one of ours; undefined if it is another's. */
function distance(written: string, known: string): number | undefined {
  const [[prefix, name], [ourPrefix, ourName]] = [split(written.toLowerCase()), split(known.toLowerCase())];
  if (prefix === "" && ourPrefix !== "" && name.length < LEAST_BARE) return undefined;
  const inPrefix = OUR_PREFIXES.has(prefix) ? Number(prefix !== ourPrefix) : countEdits(prefix, ourPrefix);
  const inName = countEdits(name, ourName);
  const isNear = inPrefix <= MOST_IN_PREFIX && inName <= Math.max(1, ourName.length / 6);
  return isNear ? inPrefix + inName : undefined;
}

/** The key that a mistyped one means; undefined for a key that is right, or another's. */
export function findMeantKey(written: string): Known | undefined {
  if (KNOWN_KEYS.has(written)) return undefined;
  const near = KNOWN.flatMap((known) => {
    const edits = distance(written, known.key);
    return edits === undefined ? [] : [{ known, edits }];
  });
  return near.toSorted((a, b) => a.edits - b.edits)[0]?.known;
}

/** Only text that is a valid label value is put into a command: an annotation may contain anything. */
const LABEL_VALUE = /^([A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?)?$/;

interface Miss {
  readonly of: Keyed;
  readonly written: string;
  readonly value: string;
  readonly verb: Known["as"];
  readonly meant: Known;
}

function findMisses(of: Keyed): Miss[] {
  const find = (strings: Strings, verb: Known["as"]): Miss[] =>
    Object.entries(strings).flatMap(([written, value]) => {
      const meant = findMeantKey(written);
      const isSaid = of.problems?.some((problem) => problem.includes(written)) ?? false;
      return meant && !isSaid ? [{ of, written, value, verb, meant }] : [];
    });
  return [...find(of.labels, "label"), ...find(of.annotations, "annotate")];
}

/** A key that is read as a label and as an annotation, as in older and newer versions of the original. */
const BOTH = LABELS.minTimeBetweenZonesDownscale;

/** The keys of StatefulSets that they have as labels, or annotations, and that are read as the other. */
const findMisplaced = ({ keyed }: DoctorFacts): Miss[] =>
  keyed.flatMap((of) =>
    KNOWN.flatMap((meant) => {
      const verb = meant.as === "label" ? "annotate" : "label";
      const { [meant.key]: value } = verb === "label" ? of.labels : of.annotations;
      const isMissed = value !== undefined && of.kind === "statefulset" && meant.key !== BOTH;
      return isMissed ? [{ of, written: meant.key, value, verb, meant }] : [];
    }),
  );

const valueOf = ({ of, meant }: Miss): string | undefined =>
  (meant.as === "label" ? of.labels : of.annotations)[meant.key];

const nounOf = (verb: Known["as"]): string => (verb === "label" ? "label" : "annotation");

/** What the right key says, where that is something else. */
function otherValueOf(miss: Miss): string | undefined {
  const counts = valueOf(miss);
  return counts === miss.value ? undefined : counts;
}

function describeMiss(miss: Miss): string {
  const { written, verb, meant } = miss;
  const counts = otherValueOf(miss);
  const also = counts === undefined ? "" : `, which is ${counts} and counts`;
  return `its ${nounOf(verb)} ${written} has no effect; did you mean the ${nounOf(meant.as)} ${meant.key}${also}?`;
}

function describeMisplaced(miss: Miss): string {
  const [is, read] = miss.verb === "label" ? ["a label", "an annotation"] : ["an annotation", "a label"];
  const counts = valueOf(miss);
  return `${miss.written} is ${is}; it is read as ${read} only${counts === undefined ? "" : `, which is ${counts} and counts`}`;
}

const change = ({ of }: Miss, one: Known["as"], pairs: string): string =>
  kubectl(of, `${one} ${of.kind} ${of.name} ${pairs}`);

/** Gives it the right key in the right place, where a value that is there already stays. */
function correct(miss: Miss): string {
  const { of, written, value, verb, meant } = miss;
  if (valueOf(miss) !== undefined) return change(miss, verb, `${written}-`);
  if (!LABEL_VALUE.test(value)) return edit(of, of.kind);
  if (meant.as === verb) return change(miss, verb, `${meant.key}=${value} ${written}-`);
  return `${change(miss, meant.as, `${meant.key}=${value}`)} && ${change(miss, verb, `${written}-`)}`;
}

/** A mistyped key beside the right one of another value: only its writer knows which is meant. */
const correctMiss = (miss: Miss): string =>
  otherValueOf(miss) === undefined ? how("if so", correct(miss)) : edit(miss.of, miss.of.kind);

const objectOf = ({ of }: Miss): string => `${of.kind}/${of.name}`;

/** Mistyped keys of all kinds of objects, and keys in the wrong place of a StatefulSet. */
export const KEYS: readonly Check[] = [
  row({
    check: "mistyped-key",
    level: "warning",
    when: ({ keyed }) => keyed.flatMap(findMisses),
    object: objectOf,
    message: describeMiss,
    fix: correctMiss,
  }),
  row({
    check: "misplaced-key",
    level: "error",
    when: findMisplaced,
    object: objectOf,
    message: describeMisplaced,
    fix: correct,
  }),
];
