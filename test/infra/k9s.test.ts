/** The files for k9s: commands that zonewise has, columns that the definitions have. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { COMMANDS, createProgram } from "../../cli/program.ts";
import { findKind } from "../../cli/kinds.ts";
import { fieldsOf } from "../emulator/objects.ts";
import { read } from "./manifests.ts";

interface Plugin {
  readonly shortCut: string;
  readonly description: string;
  readonly scopes: readonly string[];
  readonly command: string;
  readonly args: readonly string[];
  readonly confirm?: boolean;
  readonly dangerous?: boolean;
}

const plugins = Object.entries(read("infra/k9s/plugins.yaml")[0]?.["plugins"] as Readonly<Record<string, Plugin>>);
const views = read("infra/k9s/views.yaml")[0]?.["views"] as Readonly<
  Record<string, { readonly columns: readonly string[]; readonly sortColumn?: string }>
>;
/** Commands that change something. */
const WRITES = new Set(["pause", "resume", "restart", "undo", "retry", "promote"]);

/** The words of the one call of zonewise in a script of bash. */
const wordsOf = ({ args }: Plugin): string[] =>
  (/^zonewise ([^|;]+?)(?: 2>&1)?(?: \||;)/.exec(`${args[1]} |`)?.[1] ?? "")
    .split(" ")
    .map((word) => word.replaceAll("'", ""));

describe("the plugins", () => {
  for (const [name, plugin] of plugins)
    it(`${name} calls a command that there is, with its flags`, async () => {
      assert.deepEqual([plugin.command, plugin.args[0], plugin.args.length], ["bash", "-c", 2]);
      const called: string[] = [];
      const program = createProgram(
        COMMANDS,
        async ({ name: command }, args) => void called.push(command, ...args),
        async () => {},
      );
      for (const sub of program.commands) sub.exitOverride();
      await program.parseAsync(wordsOf(plugin), { from: "user" });
      const [command = "", ...args] = called;
      assert.ok(args.length > 0, "an argument");
      if (command === "explain") assert.ok(findKind(args[0]?.split("/")[0] ?? ""), args[0]);
      assert.equal(plugin.dangerous === true && plugin.confirm === true, WRITES.has(command), "asks before it changes");
    });

  it("have one shortcut a view each", () => {
    const keys = plugins.flatMap(([, { scopes, shortCut }]) => scopes.map((scope) => `${scope} ${shortCut}`));
    assert.deepEqual(keys, [...new Set(keys)]);
  });

  it("read no column that its view does not have", () => {
    for (const [name, { args, scopes }] of plugins)
      for (const [, column = ""] of (args[1] ?? "").matchAll(/\$COL-([A-Z-]+)/g)) {
        const shown = Object.entries(views).filter(([view]) => scopes.includes(view.split("/")[2] ?? ""));
        assert.ok(
          shown.some(([, { columns }]) => columns.some((one) => one.startsWith(`${column}:`))),
          name,
        );
      }
  });
});

/** The schema below a path of fields; an element of a list is the schema of its items. */
function schemaAt(schema: unknown, path: string): unknown {
  const steps = path.replaceAll(/\[\?[^\]]*\]/g, "[]").matchAll(/\.([^.[\]]+)|\[\]/g);
  let found: unknown = schema;
  for (const [, field] of steps)
    found = field === undefined ? fieldsOf(found)["items"] : fieldsOf(fieldsOf(found)["properties"])[field];
  return found;
}

describe("the views", () => {
  const files = ["phasedrollouts", "rolloutgates", "rolloutgroups", "zoneawarepoddisruptionbudgets"].map(
    (name) => `infra/manifests/crds/${name}.yaml`,
  );
  const definitions = [...files, "infra/manifests/node-updates/crds/nodeupdatepolicies.yaml"].flatMap((file) =>
    read(file),
  );

  for (const [view, { columns }] of Object.entries(views))
    if (!view.startsWith("apps/"))
      it(`${view} shows fields that its definition has`, () => {
        const [group, version, plural] = view.split("/");
        const definition = definitions.find(({ metadata }) => metadata?.name === `${plural}.${group}`);
        const { versions } = definition?.["spec"] as {
          versions: { name: string; schema: { openAPIV3Schema: object } }[];
        };
        const schema = versions.find(({ name }) => name === version)?.schema.openAPIV3Schema ?? assert.fail(view);
        const paths = columns.flatMap((column) => /^[A-Z-]+:(\.[^|]+)/.exec(column)?.[1] ?? []);
        assert.ok(paths.length > 3);
        for (const path of paths) assert.ok(schemaAt(schema, path), path);
      });

  it("sort by a column that they show", () => {
    for (const [view, { sortColumn, columns }] of Object.entries(views))
      if (sortColumn !== undefined)
        assert.ok(
          columns.some((column) => column.startsWith(`${sortColumn.split(":")[0]}:`)),
          view,
        );
  });
});
