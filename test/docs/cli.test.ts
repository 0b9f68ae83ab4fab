/** docs/cli.md has a row for every command and every flag, with the text of their tables, and no other row. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GLOBAL_FLAGS } from "../../cli/flags.ts";
import { VERSION } from "../../cli/commands/version.ts";
import { COMMANDS } from "../../cli/program.ts";
import { BUDGETS } from "../../cli/decide/doctor/budgets.ts";
import {
  ACCOUNTS,
  CLUSTER,
  DEFINITIONS,
  DELETIONS,
  OWNERS,
  PROTECTION,
  TEMPLATES,
  TICKS,
  WEBHOOKS,
} from "../../cli/decide/doctor/installation.ts";
import { KEY_CHECKS } from "../../cli/decide/doctor/keys.ts";
import { GATES, MIRRORS, PHASED, POLICIES, SECRETS } from "../../cli/decide/doctor/rollouts.ts";
import { ORPHANS, ZONES } from "../../cli/decide/doctor/zones.ts";
import { namesIn, readPage } from "./pages.ts";

const page = readPage("docs/cli.md");
const section = (heading: string): string =>
  page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? assert.fail(heading);

const commands = COMMANDS.map(({ name, arguments: words, summary, exits }) => {
  const codes = Object.entries(exits).map(([code, meaning]) => `${code}: ${meaning}`);
  const usage = `${name} ${words}`.trim();
  return { name: usage, row: `| \`${usage}\` | ${summary} | ${codes.join("; ")} |` };
});
const flags = [
  ...COMMANDS.flatMap((command) =>
    command.flags.map(({ flag, summary }) => ({ name: `${command.name} ${flag}`, summary })),
  ),
  ...GLOBAL_FLAGS.map(({ flag, summary }) => ({ name: flag, summary })),
].map(({ name, summary }) => ({ name, row: `| \`${name}\` | ${summary} |` }));

it("the version is that of the package", () =>
  assert.equal(VERSION, (JSON.parse(readPage("package.json")) as { version: string }).version));

describe("docs/cli.md", () => {
  for (const { name, row } of [...commands, ...flags])
    it(`describes ${name} like its table`, () => assert.ok(page.includes(row), row));
  it("has no other command, and no other flag", () => {
    const sorted = (names: readonly string[]): string[] => names.toSorted();
    assert.deepEqual(sorted(namesIn(section("Commands"))), sorted(commands.map(({ name }) => name)));
    assert.deepEqual(sorted(namesIn(section("Flags"))), sorted(flags.map(({ name }) => name)));
  });
});

it("docs/cli.md has every check of doctor with its levels, and no other", () => {
  const written = [
    ...section("What doctor checks").matchAll(/^\| (`.*?) \| (error|warning|error, warning) \|/gm),
  ].flatMap(([, names = "", levels = ""]) =>
    names.split(", ").flatMap((name) => levels.split(", ").map((level) => `${name.replaceAll("`", "")} ${level}`)),
  );
  const tables: readonly (readonly { readonly check: string; readonly level: string }[])[] = [
    TICKS,
    PROTECTION,
    WEBHOOKS,
    ACCOUNTS,
    DEFINITIONS,
    DELETIONS,
    TEMPLATES,
    OWNERS,
    CLUSTER,
    BUDGETS,
    ZONES,
    ORPHANS,
    KEY_CHECKS,
    MIRRORS,
    PHASED,
    GATES,
    POLICIES,
    SECRETS,
  ];
  const checks = new Set(tables.flat().map(({ check, level }) => `${check} ${level}`));
  assert.deepEqual(written.toSorted(), [...checks].toSorted());
});
