/** Answers of `zonewise explain` as text. */
import { type Explanation, GO_ON } from "../decide/answer.ts";
import { type Display, formatAge, type Tone, untilOf } from "./text.ts";
import { layRemedy, wrapAfter } from "./table.ts";

interface Titled {
  readonly kind: string;
  readonly name: string;
  readonly answers: readonly Explanation[];
}

/** Of the phases that a hold may have. */
const TONES: Readonly<Record<string, Tone>> = { Blocked: "bad", RollingOut: "moving" };

/** How a no reads, in the order of the words that people ask with. */
const DENIALS: Readonly<Record<string, string>> = {
  evict: "Cannot be evicted",
  drain: "Cannot be drained",
  update: "Not updated",
  [GO_ON]: "Blocks its group",
};

/** Columns before a fact. */
const INDENT = 12;

export function renderAnswers({ kind, name, answers }: Titled, display: Display, now: number): string {
  return [`${kind}/${name}\n`, ...answers.map((answer) => renderAnswer(answer, display, now))].join("");
}

function renderAnswer(answer: Explanation, display: Display, now: number): string {
  const { question, allowed, reason, message } = answer;
  const { style } = display;
  if (allowed) {
    const title = answer.answer === undefined ? `${question}: yes` : `${answer.answer}:`;
    return `  ${style("good", title)}  ${wrapAfter(message, title.length + 4, display)}\n`;
  }
  const facts = [
    ["why", message],
    ["rule", answer.rule],
    ["blocks", answer.objects.map((object) => `${object.kind.toLowerCase()}/${object.name}`).join(", ")],
    ["since", answer.since === undefined ? "" : `${formatAge(answer.since, now)} ago (${answer.since})`],
    ["next", untilOf(answer.until, now)],
    ["fix", answer.remedy],
  ].filter(([, text]) => text !== "");
  const lines = facts.map(([label = "", text = ""]) => {
    const shown = label === "fix" ? layRemedy(text, INDENT, display) : wrapAfter(text, INDENT, display);
    return `    ${label.padEnd(INDENT - 5)} ${shown}\n`.replace(/ +\n/, "\n");
  });
  const denial = answer.answer === undefined ? DENIALS[question] : undefined;
  const verdict = denial ?? `${question}: ${answer.answer ?? "no"}`;
  const tone = TONES[answer.answer ?? "Blocked"] ?? "waiting";
  return `  ${style(tone, verdict)}  ${reason}\n${lines.join("")}`;
}
