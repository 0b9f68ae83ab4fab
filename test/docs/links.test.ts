/** Every link in the documentation has a target, and every file that it names exists. */
import assert from "node:assert/strict";
import { existsSync, globSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { PAGES, readPage, ROOT } from "./pages.ts";

const LINK = /\]\((?<target>[^)\s]+)\)/g;
const HEADING = /^#+ (?<text>.+)$/gm;
/**
 * A path of the repository; a path with another prefix (`dist/functions`, `../infra`) is relative to another folder.
 */
const PATH = /(?<![\w./<-])(?:cli|functions|reconciler|infra|test|docs|knative|examples)\/[\w./*-]*[\w*]/g;
const FENCE = /^```[^]*?^```$/gm;

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const { groups } of page.replaceAll(FENCE, "").matchAll(HEADING)) {
    const slug = (groups?.["text"] ?? "")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-");
    let anchor = slug;
    for (let again = 1; anchors.has(anchor); again++) anchor = `${slug}-${again}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Links of a page without a target file or heading. */
function findDeadLinks(path: string, text: string): string[] {
  const targets = [...text.matchAll(LINK)].map(({ groups }) => groups?.["target"] ?? "");
  return targets.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [file = "", anchor] = target.split("#");
    const found = file === "" ? path : join(dirname(path), file);
    if (!existsSync(join(ROOT, found))) return true;
    return anchor !== undefined && !anchorsOf(found === path ? text : readPage(found)).has(anchor);
  });
}

/** Paths of the repository that a text names and that do not exist. */
function findMissingPaths(text: string): string[] {
  const paths = [...text.matchAll(PATH)].map(([path]) => path);
  return paths.filter((path) =>
    path.includes("*") ? globSync(path, { cwd: ROOT }).length === 0 : !existsSync(join(ROOT, path)),
  );
}

for (const path of PAGES)
  describe(path, () => {
    const text = readPage(path);
    it("has no dead link", () => assert.deepEqual(findDeadLinks(path, text), []));
    it("names only files and folders that exist", () => assert.deepEqual(findMissingPaths(text), []));
  });

it("every page of documentation that a source names exists", () => {
  const files = globSync("{cli,functions,reconciler,infra,knative,test}/**/*.{ts,yaml}", {
    cwd: ROOT,
    exclude: ["test/docs/links.test.ts"],
  });
  const named = files.flatMap((file) => [...readPage(file).matchAll(/\bdocs\/[\w/-]+\.md\b/g)].map(([page]) => page));
  assert.ok(named.length > 3, `${named.length} pages`);
  assert.deepEqual(
    named.filter((page) => !existsSync(join(ROOT, page))),
    [],
  );
});

describe("the check of links", () => {
  const page = "# One page\n\n## What it does, and why\n\n## One page\n";
  for (const link of [
    "[a](README.md)",
    "[a](#what-it-does-and-why)",
    "[a](#one-page-1)",
    "[a](docs/reference/variables.md#flags-of-rollout-operator)",
    "[a](https://x.example/y#z)",
  ])
    it(`takes ${link}`, () => assert.deepEqual(findDeadLinks("README.md", `${page}${link}`), []));
  for (const [link, target] of [
    ["[a](docs/none.md)", "docs/none.md"],
    ["[a](#two-pages)", "#two-pages"],
    ["[a](docs/reference/variables.md#none)", "docs/reference/variables.md#none"],
  ] as const)
    it(`finds ${link}`, () => assert.deepEqual(findDeadLinks("README.md", `${page}${link}`), [target]));
  it("finds a path that does not exist", () =>
    assert.deepEqual(
      findMissingPaths(
        "`infra/none.ts`, infra/manifests/none, infra/*/none, dist/functions/x.js, docs/reference/variables.md",
      ),
      ["infra/none.ts", "infra/manifests/none", "infra/*/none"],
    ));
});
