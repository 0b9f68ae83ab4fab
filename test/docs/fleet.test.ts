/** The commands of docs/fleet.md: shells read them, and what they name is in the files beside them. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { type Manifest, read } from "../infra/manifests.ts";
import { readPage } from "./pages.ts";

const page = readPage("docs/fleet.md");

/** Blocks of commands: indented by four, without those in a list, which are manifests. */
const blocks = [...page.matchAll(/(?:^ {4}(?=\S).*\n(?:^ {4}.*\n)*)/gm)].map(([block]) =>
  block.replaceAll(/^ {4}/gm, ""),
);
/** A table's cells in code. */
const cells = [...page.matchAll(/`((?:kubectl|flux) [^`]+)`/g)].map(([, command = ""]) => command);
const commands = [...blocks, ...cells];
const patches = commands.flatMap((command) => [...command.matchAll(/^(.*?)-p '([^']+)'/gm)]);

/** The engines whose objects are ours to name; the others' GitRepo and PropagationPolicy are the user's. */
const FILES: Readonly<Record<string, string>> = {
  manifestworkreplicaset: "open-cluster-management.yaml",
  clusterstagedupdaterun: "kubefleet.yaml",
  clusterprofile: "sveltos.yaml",
};

function find(kind: string, name: string): Manifest {
  const objects = read(`infra/gitops/${FILES[kind]}`);
  return (
    objects.find((one) => one.kind?.toLowerCase() === kind && one.metadata?.name === name) ??
    assert.fail(`${kind} ${name}`)
  );
}

/** The value at a JSON pointer, or undefined. */
const at = (object: unknown, pointer: string): unknown =>
  pointer
    .split("/")
    .slice(1)
    .reduce<unknown>((value, key) => (value as Readonly<Record<string, unknown>> | undefined)?.[key], object);

/** `{"a": {"b": 1}}` as `/a/b`. */
const pointersOf = (value: unknown, path = ""): string[] =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, part]) => pointersOf(part, `${path}/${key}`))
    : [path];

describe("the commands of docs/fleet.md", () => {
  it("are there", () => assert.ok(blocks.length >= 3 && cells.length >= 7, `${blocks.length} and ${cells.length}`));
  for (const command of commands)
    it(`a shell reads: ${command.slice(0, 60).replaceAll("\n", " ")}`, () => {
      const { status, stderr } = spawnSync("bash", ["-n"], { input: command, encoding: "utf8" });
      assert.equal(status, 0, stderr);
    });

  for (const [, , patch = ""] of patches.filter(
    ([, , patch = ""]) => !patch.includes("'") && !patch.startsWith('{"status"'),
  ))
    it(`the patch is JSON: ${patch.slice(0, 60)}`, () => void JSON.parse(patch));

  for (const kind of Object.keys(FILES))
    it(`stop a ${kind} that the engine's file has, by a field of it`, () => {
      const command = cells.find((one) => one.includes(` ${kind} `)) ?? assert.fail(kind);
      const [, name = ""] = new RegExp(` ${kind} ([\\w-]+)`).exec(command) ?? [];
      const object = find(kind, name);
      const [, , patch] = patches.find(([, before = ""]) => before.includes(` ${kind} `)) ?? [];
      if (patch === undefined) return;
      const parsed: unknown = JSON.parse(patch);
      const pointers = Array.isArray(parsed)
        ? (parsed as { path: string }[]).map(({ path }) => path)
        : pointersOf(parsed);
      for (const pointer of pointers) assert.notEqual(at(object, pointer), undefined, pointer);
    });

  it("approve a stage and a run that kubefleet.yaml has", () => {
    const [, stage = ""] = /targetUpdatingStage=(\w+)/.exec(page) ?? [];
    const [, run = ""] = /parentStageRollout=="([\w-]+)"/.exec(page) ?? [];
    const { spec } = find("clusterstagedupdaterun", run) as unknown as { spec: { stagedRolloutStrategyName: string } };
    const strategy = read("infra/gitops/kubefleet.yaml").find(
      (one) => one.metadata?.name === spec.stagedRolloutStrategyName,
    );
    const stages = at(strategy, "/spec/stages") as readonly {
      name: string;
      afterStageTasks?: readonly { type: string }[];
    }[];
    const found = stages.find(({ name }) => name === stage);
    assert.ok(
      found?.afterStageTasks?.some(({ type }) => type === "Approval"),
      stage,
    );
    assert.ok(page.includes(`-l wave=${stage}`));
  });
});
