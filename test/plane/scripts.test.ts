/** The scripts need Go, root or minutes to run: what their text shows is tested here. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { filesFor } from "../runner/files.ts";

const at = (path: string): string => join(import.meta.dirname, path);
const read = (path: string): string => readFileSync(at(path), "utf8");

const COMMANDS = ["build", "down", "image", "knative/prove", "knative/serving", "real-node", "restart", "up"];
const SOURCED = [
  "env",
  "settings.sh",
  ...readdirSync(at("real")).flatMap((name) => (name.endsWith(".sh") ? [`real/${name}`] : [])),
];
const SCRIPTS = [...COMMANDS, ...SOURCED];
const MODULES = ["control-plane", "worker"];

describe("the scripts of the control plane", () => {
  for (const name of SCRIPTS) {
    it(`${name} is bash`, () => {
      const { status, stderr } = spawnSync("bash", ["-n", at(name)], { encoding: "utf8" });
      assert.equal(status, 0, stderr);
    });
    it(`${name} names files that are there`, () => {
      const named = [...read(name).matchAll(/\$here\/([\w./-]+)/g)].map(([, path = ""]) => path);
      assert.deepEqual(
        named.filter((path) => !path.startsWith("../../node_modules") && !existsSync(at(path))),
        [],
      );
    });
  }
  for (const name of COMMANDS) {
    it(`${name} can be run, and ends at the first command that fails`, () => {
      accessSync(at(name), constants.X_OK);
      assert.match(
        read(name),
        /^#!\/usr\/bin\/env bash\n(?:# .*\n)+\. "\$\(dirname "\$\{BASH_SOURCE\[0\]\}"\)(?:\/\.\.)?\/settings\.sh"\n/,
      );
      assert.match(read("settings.sh"), /^set -euo pipefail$/m);
    });
  }

  it("are the files beside this one", () => {
    const files = readdirSync(at("."), { withFileTypes: true }).filter(
      (entry) => entry.isFile() && !/\.(?:md|ts)$/.test(entry.name),
    );
    assert.deepEqual(
      files.map(({ name }) => name).toSorted(),
      SCRIPTS.filter((name) => !name.includes("/")).toSorted(),
    );
  });

  it("read no variable from outside that the README does not name", () => {
    const variables = SCRIPTS.flatMap((name) =>
      [...read(name).matchAll(/\$\{([A-Z_]+):-/g)].map(([, variable = ""]) => variable),
    );
    const others = "NODE_EXTRA_CA_CERTS"; // of Node.js
    const readme = read("README.md");
    const unnamed = new Set(
      variables.filter((variable) => variable !== others && !readme.includes(`| \`${variable}\` |`)),
    );
    assert.ok(variables.length > 10);
    assert.deepEqual([...unnamed], []);
  });
});

describe("the gate", () => {
  const gate = read("../../.ci/run");

  it("runs each test of a real cluster on one of its control planes, and those that need the node on the first", () => {
    assert.match(gate, /^on 1 run_tests --real-node \|\| status/m);
    assert.match(gate, /for n in \$others; do on "\$n" start_and_test /);
    const all = globSync("test/cluster/**/*.cluster.ts", { cwd: at("../..") });
    const [first, other] = [filesFor(all, true), filesFor(all, false)];
    assert.deepEqual(first.toSorted(), all.toSorted());
    const atNode = first.filter((path) => !other.includes(path));
    assert.deepEqual(atNode, all.filter((path) => path.includes("/real-node/")).toSorted());
    assert.ok(atNode.length > 0);
    assert.deepEqual(first.slice(0, atNode.length), atNode);
  });

  it("runs npm test first, and then whole what that leaves out or reduces", () => {
    const [first = -1, rest = -1] = [/^npm test$/m, /\bnpm run test:all -- --rest\b/].map((command) =>
      gate.search(command),
    );
    assert.ok(first > 0 && rest > first);
  });
});

describe("the README of the control plane", () => {
  const paths = [...read("README.md").matchAll(/test\/plane\/([\w-]+)/g)].map(([, path = ""]) => path);
  for (const name of new Set(paths)) it(`names ${name}, which is there`, () => assert.ok(existsSync(at(name))));

  it("names the version of Kubernetes that both modules pin", () => {
    const versions = MODULES.map((name) => /^\tk8s\.io\/kubernetes v(\S+)$/m.exec(read(`${name}/go.mod`))?.[1] ?? "");
    assert.equal(versions[0], versions[1]);
    assert.ok(read("README.md").includes(`Kubernetes ${versions[0]?.replace(/\.\d+$/, "")}`));
  });

  it("names the other versions of the control plane, each of which is what its file is called", () => {
    const others = readdirSync(at("control-plane")).flatMap((name) => /^(\d.*)\.mod$/.exec(name)?.[1] ?? []);
    assert.ok(others.length > 0);
    for (const version of others) {
      const module = read(`control-plane/${version}.mod`);
      const pinned = /^\tk8s\.io\/kubernetes v(\S+)$/m.exec(module)?.[1] ?? "";
      assert.ok(pinned.startsWith(`${version}.`), pinned);
      const staged = [...module.matchAll(/^\tk8s\.io\/\S+ => k8s\.io\/\S+ v0\.(\S+)$/gm)].map(([, one]) => one);
      assert.deepEqual([...new Set(staged)], [pinned.replace(/^1\./, "")]);
      assert.ok(read("README.md").includes(`KUBERNETES=${version}`));
      assert.ok(existsSync(at(`control-plane/${version}.sum`)));
    }
  });

  it("names the version of Knative Serving that its module pins", () => {
    const version = /^\tknative\.dev\/serving v(\d+\.\d+)/m.exec(read("knative/go.mod"))?.[1];
    assert.ok(read("README.md").includes(`Knative Serving ${version} `));
  });

  it("names the version of Go that the modules need", () => {
    for (const name of [...MODULES, "helm-3", "helm-4", "knative", "actionlint", "cosign"]) {
      for (const file of readdirSync(at(name)).filter((one) => one.endsWith(".mod"))) {
        const version = /^go (\d+\.\d+)/m.exec(read(`${name}/${file}`))?.[1];
        assert.ok(read("README.md").includes(`Go ${version} or later`));
      }
    }
  });
});
