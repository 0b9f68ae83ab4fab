/**
 * A reason to wait is one row of REASONS (reconciler/model/decision.ts). Log, Events, metrics, conditions and the
 * commands follow from its facts. What is written by hand is held here: a failure names each file and line, and what to
 * add there.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { hold, type Reason, type ReasonFacts, REASONS } from "../../reconciler/model/decision.ts";
import { draftEvents } from "../../reconciler/report/events.ts";
import { readPage, readSources } from "./pages.ts";

type Row = readonly [reason: string, facts: ReasonFacts];

const ROWS: readonly Row[] = Object.entries(REASONS);
const quote = (reason: string): string => `\`${reason}\``;

/** A table that has a line for every reason, in the order of REASONS. */
interface Place {
  readonly file: string;
  /** Where the table begins and ends. */
  readonly from: string;
  readonly to: string;
  /** How the line of a reason begins. */
  readonly begins: (row: Row) => string;
  /** What a new line is to say after that. */
  readonly says: string;
}

const PLACES: readonly Place[] = [
  {
    file: "docs/reference/reasons.md",
    from: "| reason | phase |",
    to: "## Other Events",
    begins: ([reason, facts]) => `| ${quote(reason)} | ${describePhase(facts)} | ${describeEvent(facts)} | `,
    says: "MEANING | WHAT TO DO |",
  },
  {
    file: "reconciler/remedies/rules.ts",
    from: "export const RULES",
    to: "  SeveralBudgets: {",
    begins: ([reason]) => `  ${reason}: { `,
    says: "rule: WHAT MUST HOLD, remedy: THE SMALLEST CHANGE THAT LETS IT GO ON },",
  },
  {
    file: "test/cli/decide/explain-group.test.ts",
    from: "const HELPS",
    to: "};",
    begins: ([reason]) => `  ${reason}: `,
    says: "/WHAT THE REMEDY NAMES/,",
  },
];

/** The class of a reason in the format of its column. */
function describePhase({ phase, blocksAfterMs }: ReasonFacts): string {
  const after = blocksAfterMs === undefined ? "" : `; \`Blocked\` after ${blocksAfterMs / 60_000} min`;
  return `\`${phase}\`${after}`;
}

/** The Event of a hold in the format of its column. */
function describeEvent({ requested, patienceMs, fails }: ReasonFacts): string {
  const after = patienceMs > 0 ? ` after ${patienceMs / 1000} s` : "";
  return `${requested ? "Normal" : "Warning"}${after}${fails ? "; the group fails" : ""}`;
}

/** What a table lacks, or has too much. */
function compare({ file, from, to, begins, says }: Place, rows: readonly Row[]): string[] {
  const lines = readPage(file).split("\n");
  const first = lines.findIndex((line) => line.startsWith(from));
  const last = lines.findIndex((line, i) => i > first && line.startsWith(to));
  assert.ok(first >= 0 && last > first, `${file} has no ${from} before ${to}`);
  const known = new Set(rows.map(([reason]) => reason));
  const missing: string[] = [];
  let at = lines.findIndex((line, i) => i > first && /^(?:\| `|  )\w+/.test(line));
  for (const row of rows) {
    const start = begins(row).trimEnd();
    const found = lines.findIndex((line, i) => i >= at && i < last && line.startsWith(start));
    if (found < 0) missing.push(`${file}:${at + 1}: add ${begins(row).trim()} ${says}`);
    else at = found + 1;
  }
  const extra = lines.flatMap((line, i) => {
    const [, reason = ""] = (i > first && i < last && /^(?:\| `|  )(\w+)(?:`|:)/.exec(line)) || [];
    return reason === "" || known.has(reason) ? [] : [`${file}:${i + 1}: remove ${reason}, which is no reason`];
  });
  return [...missing, ...extra];
}

const ALERTS = "infra/observability/prometheus-rule.yaml";

/** The alert of blocked groups names the reasons that need a fix and do not fail the group. */
function compareAlert(rows: readonly Row[]): string[] {
  const wanted = rows
    .flatMap(([reason, { phase, fails }]) => (phase === "Blocked" && !fails ? [reason] : []))
    .join("|");
  const lines = readPage(ALERTS).split("\n");
  const at = lines.findIndex((line) => line.includes("zonewise_group_held{"));
  return lines[at]?.includes(`{reason=~"${wanted}"}`)
    ? []
    : [`${ALERTS}:${at + 1}: set reason=~"${wanted}", then npm run chart`];
}

/** In the reference, those that keep a zone from being scaled are the last, from the one that its text names. */
function compareScaling(rows: readonly Row[]): string[] {
  const [, first] =
    /^- The reasons from `(\w+)` on keep a zone from being scaled/m.exec(readPage("docs/reference/reasons.md")) ?? [];
  const at = rows.findIndex(([reason]) => reason === first);
  const wrong = rows.filter(([, { scaling }], i) => (scaling === true) !== i >= at);
  return wrong.map(
    ([reason]) =>
      `reconciler/model/decision.ts: ${reason} is on the wrong side of ${first}, from which on reasons have \`scaling\``,
  );
}

function compareRules(rows: readonly Row[]): string[] {
  const sources = readSources("reconciler").replace(readPage("reconciler/model/decision.ts"), "");
  const unused = rows.filter(([reason]) => !sources.includes(`"${reason}"`));
  return unused.map(([reason]) => `reconciler/: no rule holds with ${reason}`);
}

const compareAll = (rows: readonly Row[]): string[] => [
  ...PLACES.flatMap((place) => compare(place, rows)),
  ...compareAlert(rows),
  ...compareScaling(rows),
  ...compareRules(rows),
];

it("every reason to wait is in each table that is written by hand, and no other is", () => {
  const missing = compareAll(ROWS);
  assert.equal(missing.length, 0, `\n${missing.join("\n")}\n`);
});

it("a new reason is told where it is missing, and a table which of its rows is no reason", () => {
  const facts = { phase: "Blocked", scaling: true, patienceMs: 30_000 } as const;
  const said = compareAll([...ROWS.filter(([reason]) => reason !== "DelayInvalid"), ["NewReason", facts]]);
  const places = said.map((one) => one.replace(/:\d+: /, ": "));
  for (const file of PLACES.map((place) => place.file)) {
    assert.ok(places.includes(`${file}: remove DelayInvalid, which is no reason`), said.join("\n"));
    assert.ok(
      places.some((one) => one.startsWith(`${file}: add `) && one.includes("NewReason")),
      said.join("\n"),
    );
  }
  assert.ok(
    places.includes(
      "docs/reference/reasons.md: add | `NewReason` | `Blocked` | Warning after 30 s | MEANING | WHAT TO DO |",
    ),
    said.join("\n"),
  );
  assert.ok(places.some((one) => one.startsWith(`${ALERTS}: set `) && one.includes("ScaleRefused|NewReason")));
  assert.ok(places.includes("reconciler/: no rule holds with NewReason"));
  assert.equal(said.length, 2 * PLACES.length + 2);
});

it("the reference says of each reason which Event it has", () => {
  const zone = { kind: "StatefulSet", namespace: "default", name: "zone-a", uid: "1" } as const;
  for (const [reason, facts] of ROWS) {
    const common = { namespace: "default", group: "group", zones: [], scalingHolds: [], notes: [] };
    const outcome = { ...common, state: "held", hold: hold(reason as Reason, "", [zone]) } as const;
    assert.equal(draftEvents(outcome, undefined, () => facts.patienceMs - 1).length, 0);
    const [draft] = draftEvents(outcome, undefined, () => facts.patienceMs);
    assert.ok(describeEvent(facts).startsWith(draft?.type ?? "none"), reason);
  }
});
