/** Prints a result in the user's format, after the warning that the reconciler does not tick. */
import { dump } from "js-yaml";
import { isFields } from "../../infra/json.ts";
import { isCommand } from "../../reconciler/model/remedy.ts";
import { consequenceOf } from "../decide/answer.ts";
import { concerns, type NoTick } from "../../reconciler/report/ticking.ts";
import { listSome } from "../../infra/cut.ts";
import type { Unprotected } from "../decide/overview.ts";
import type { Io, Session } from "../session.ts";
import { wrapWords } from "./table.ts";

/** It stands before what may make everything below it untrue. */
const HEADING = "warning";
/** A narrower terminal has no room for an indent. */
const MIN_COLUMNS = 40;

/** `value` for programs; `render` for people, with its line breaks. */
export function print(
  { output, io, noTicks }: Pick<Session, "output" | "io" | "noTicks">,
  value: unknown,
  render: () => string,
): void {
  const first = renderNoTicks(noTicks, { style: io.style, columns: io.width?.() });
  io.write(format(output, addNoTicks(value, noTicks)) ?? first + render());
}

/** The value in the format that a program reads; undefined if a person reads it. */
export function format(output: Session["output"], value: unknown): string | undefined {
  if (output === "json") return `${JSON.stringify(value, undefined, 2)}\n`;
  // Without undefined values, which YAML cannot express.
  return output === "yaml" ? dump(JSON.parse(JSON.stringify(value)), { lineWidth: -1 }) : undefined;
}

/**
 * The value with the field `reconciler` in each object whose reconciler does not tick; not for reconcilers of other
 * namespaces.
 */
export function addNoTicks(value: unknown, noTicks: readonly NoTick[]): unknown {
  if (Array.isArray(value)) return value.map((one: unknown) => addNoTicks(one, noTicks));
  if (!isFields(value)) return value;
  const { namespace } = value;
  const own = noTicks.filter((one) => typeof namespace !== "string" || concerns(one, namespace));
  return own.length > 0 ? { ...value, reconciler: own } : value;
}

interface BannerLook extends Pick<Io, "style"> {
  /** The width of the terminal; undefined for lines of any length. */
  readonly columns: number | undefined;
}

/**
 * "" if all reconcilers tick. Sentences are broken between words to fit the terminal. A command is one line, which the
 * terminal wraps and copies in one piece.
 */
export const renderNoTicks = (noTicks: readonly NoTick[], look: BannerLook): string =>
  noTicks
    .map((noTick) => {
      const { state, message, remedy } = noTick;
      const consequence = state === "stopped" ? consequenceOf(noTick) : "what is recorded may be old";
      return renderBanner({ sentences: [message, consequence], remedy }, look);
    })
    .join("");

/** "" without trouble with the eviction webhook. */
export const renderUnprotected = (unprotected: readonly Unprotected[], look: BannerLook): string =>
  unprotected
    .map(({ namespace, budgets, message }) => {
      const sentences = [`${message} (recorded for budget ${listSome(budgets)} in ${namespace})`];
      return renderBanner({ sentences, remedy: `zonewise -n ${namespace} doctor` }, look);
    })
    .join("");

interface Banner {
  readonly sentences: readonly string[];
  readonly remedy: string;
}

function renderBanner({ sentences, remedy }: Banner, { style, columns = Infinity }: BannerLook): string {
  const indent = " ".repeat(columns < MIN_COLUMNS ? 0 : HEADING.length + 2);
  const wrap = (text: string): string => wrapWords(text, columns - indent.length).join(`\n${indent}`);
  const lines = [...sentences, "fix:", ...remedy.split("\n")].map((line) => (isCommand(line) ? line : wrap(line)));
  return `${style("bad", HEADING)}${indent === "" ? "\n" : "  "}${lines.join(`\n${indent}`)}\n\n`;
}
