/** Log lines call the same thing by the same name, and name objects so that somebody finds them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readSources } from "../docs/pages.ts";

/** `log.warn("…", { a, b: c, "d.e": f, ...g })`, without what is nested. */
const LINE =
  /\.(?:debug|info|warn|error)\(\s*(?<text>"[^"]*"|`[^`]*`|\w+),\s*\{(?<fields>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}/g;
const FIELD = /(?:^|,)\s*(?<name>\w+|"[\w.]+")(?=\s*[:,]|\s*$)/g;

/** Objects of a namespace that may not be the process's own. */
const NAMESPACED: ReadonlySet<string> = new Set(["group", "zone", "pod", "budget", "gate", "phasedRollout", "object"]);
/** Other names for them. */
const WRONG: ReadonlySet<string> = new Set([
  "rolloutGroup",
  "statefulSet",
  "statefulset",
  "podName",
  "nodeName",
  "ns",
  "name",
  "names",
  "err",
]);

interface Line {
  readonly text: string;
  readonly fields: readonly string[];
}

function linesIn(source: string): Line[] {
  return [...source.matchAll(LINE)].map(({ groups }) => ({
    text: groups?.["text"] ?? "",
    fields: [...(groups?.["fields"] ?? "").replaceAll(/\{[^{}]*\}/g, "").matchAll(FIELD)].map(
      (field) => field.groups?.["name"] ?? "",
    ),
  }));
}

const isLost = ({ fields }: Line): boolean =>
  fields.some((field) => NAMESPACED.has(field)) && !fields.includes("namespace");
const isMisnamed = ({ fields }: Line): boolean => fields.some((field) => WRONG.has(field));

describe("the log lines of the sources", () => {
  const lines = linesIn(readSources("functions", "reconciler", "infra"));
  it("are found", () => assert.ok(lines.length > 40, `${lines.length} lines`));
  it("name no object of a namespace without the namespace", () => assert.deepEqual(lines.filter(isLost), []));
  it("use one name for each thing", () => assert.deepEqual(lines.filter(isMisnamed), []));

  it("would be found if they did otherwise", () => {
    const [lost, misnamed, good] = linesIn(
      'log.warn("a", { pod: name, error }); log.info(`b`, {\n  namespace,\n  statefulSet: x(1),\n}); log.info(text, { namespace, zone, error });',
    );
    assert.ok(lost && isLost(lost) && misnamed && isMisnamed(misnamed) && good && !isLost(good) && !isMisnamed(good));
  });
});
