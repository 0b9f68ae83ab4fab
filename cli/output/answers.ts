/** Answers of `zonewise explain` as text. */
import type { Explanation } from "../decide/answer.ts";
import { formatAge, untilOf } from "./age.ts";
import type { Style } from "./style.ts";

interface Titled {
  readonly kind: string;
  readonly name: string;
  readonly answers: readonly Explanation[];
}

export function renderAnswers({ kind, name, answers }: Titled, style: Style, now: number): string {
  return [`${kind}/${name}\n`, ...answers.map((answer) => renderAnswer(answer, style, now))].join("");
}

function renderAnswer(answer: Explanation, style: Style, now: number): string {
  const { question, allowed, reason, message } = answer;
  if (allowed) return `  ${style("good", `${question}: yes`)}  ${message}\n`;
  const facts = [
    ["why", message],
    ["rule", answer.rule],
    ["blocks", answer.objects.map((object) => `${object.kind.toLowerCase()}/${object.name}`).join(", ")],
    ["since", answer.since === undefined ? "" : `${formatAge(answer.since, now)} ago (${answer.since})`],
    ["next", untilOf(answer.until, now)],
    ["helps", answer.remedy],
  ].filter(([, text]) => text !== "");
  return `  ${style("bad", `${question}: no`)}  ${reason}\n${facts.map(([label = "", text = ""]) => `    ${label.padEnd(7)} ${text}\n`).join("")}`;
}
