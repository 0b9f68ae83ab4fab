/** A release: what the scripts beside infra/release refuse. What the workflows may do and call, Scorecard judges. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { readVersion } from "../../infra/chart.ts";
import { formatProvenance } from "../../infra/release/provenance.ts";
import { ROOT } from "./manifests.ts";

const text = (file: string): string => readFileSync(join(ROOT, file), "utf8");

const out = mkdtempSync(join(tmpdir(), "release-"));
after(() => rmSync(out, { recursive: true }));
function run(script: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const all = { ...process.env, OUT: out, REGISTRY: "", ORGANISATION: "", ...env };
  return spawnSync(join(ROOT, "infra/release", script), args, { encoding: "utf8", env: all });
}

describe("the workflows", () => {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const actionlint = join(cache, "zonewise-plane/bin/actionlint");
  it("pass actionlint", { skip: !existsSync(actionlint) && "test/plane/build actionlint" }, () => {
    const { status, stdout } = spawnSync(actionlint, ["-no-color"], { cwd: ROOT, encoding: "utf8" });
    assert.equal(status, 0, stdout);
  });
});

describe("a release", () => {
  const version = readVersion(ROOT);
  it("is refused for a tag that is not the version", () => {
    const { status, stderr } = run("check", ["v99.0.0"]);
    assert.equal(status, 1);
    assert.match(stderr, /the tag is v99\.0\.0, package\.json has/);
  });
  it("is refused until somebody says where it goes", () => {
    const { status, stderr } = run("check", [`v${version}`]);
    assert.equal(status, 1);
    assert.match(stderr, /fill in infra\/release\/registry\.env/);
  });
  it("is refused until the changelog dates it", () => {
    const dated = text("CHANGELOG.md").includes(`## [${version}] - 2`);
    const { status, stderr } = run("check", [`v${version}`], { REGISTRY: "127.0.0.1:1", ORGANISATION: "a" });
    assert.equal(status, dated ? 0 : 1);
    if (!dated) assert.match(stderr, /CHANGELOG\.md does not date/);
  });
});

describe("the provenance", () => {
  const env = {
    GITHUB_SERVER_URL: "https://git.example",
    GITHUB_REPOSITORY: "a/zonewise",
    GITHUB_REF: "refs/tags/v1.0.0",
    GITHUB_SHA: "c0ffee",
    GITHUB_EVENT_NAME: "push",
    GITHUB_WORKFLOW_REF: "a/zonewise/.github/workflows/release.yaml@refs/tags/v1.0.0",
    GITHUB_RUN_ID: "7",
    GITHUB_RUN_ATTEMPT: "1",
  };
  it("names the commit and the run", () =>
    assert.partialDeepStrictEqual(formatProvenance(env), {
      buildDefinition: {
        resolvedDependencies: [
          { uri: "git+https://git.example/a/zonewise@refs/tags/v1.0.0", digest: { gitCommit: "c0ffee" } },
        ],
      },
      runDetails: { metadata: { invocationId: "https://git.example/a/zonewise/actions/runs/7/attempts/1" } },
    }));
  for (const name of Object.keys(env))
    it(`is refused without ${name}`, () =>
      assert.throws(() => formatProvenance({ ...env, [name]: "" }), new RegExp(`^Error: ${name} is missing`)));
});
