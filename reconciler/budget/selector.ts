/** The selector of a budget: `matchLabels` alone, checked as the API server checks label selectors (§5.2, §6.8). */
import { type Fields, isFields } from "../../infra/json.ts";

export type MatchLabels = Readonly<Record<string, string>>;

/** No object has as many; checking takes time by their number. */
const MAX_LABELS = 1000;

// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
const NAME = /^(?=.{1,63}$)[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?$/;
const PREFIX = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** True if the selector matches the labels of an object; an empty one matches everything. */
export function matchesLabels(matchLabels: MatchLabels, labels: Readonly<Record<string, string>> | undefined): boolean {
  return Object.entries(matchLabels).every(([key, value]) => labels?.[key] === value);
}

/** The `matchLabels` of a spec; undefined if there are none or they are invalid. */
export function readMatchLabels(spec: Fields): MatchLabels | undefined {
  return problemOfSelector(spec) === undefined
    ? (spec as { selector: { matchLabels: MatchLabels } }).selector.matchLabels
    : undefined;
}

/** The problem of a spec's selector (§6.8). */
export function problemOfSelector({ selector }: Fields): string | undefined {
  if (selector === undefined) return "invalid value: selector is not found";
  const refuse = (why: string): string => `invalid value: selector is not valid, got ${why}`;
  if (!isFields(selector)) return refuse("no map");
  const { matchLabels } = selector;
  if (matchLabels === undefined) return "invalid value: selector is not found";
  if (!isFields(matchLabels)) return refuse("matchLabels that are no map");
  const keys = Object.keys(matchLabels);
  if (keys.length > MAX_LABELS) return refuse(`${keys.length} labels, more than ${MAX_LABELS}`);
  const bad = Object.entries(matchLabels).find(([key, value]) => !isLabel(key, value));
  return bad && refuse(`${JSON.stringify(bad[0])}: ${JSON.stringify(bad[1])}, which is no label`);
}

function isLabel(key: string, value: unknown): boolean {
  const [name = "", prefix, ...more] = key.split("/").toReversed();
  const keyIsWell = NAME.test(name) && (prefix === undefined || PREFIX.test(prefix)) && more.length === 0;
  return keyIsWell && typeof value === "string" && (value === "" || NAME.test(value));
}
