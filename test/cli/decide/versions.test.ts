import assert from "node:assert/strict";
import { it } from "node:test";
import { compareVersions } from "../../../cli/commands/version.ts";

const CASES: readonly (readonly [image: string, version: string | undefined, matches: boolean | undefined])[] = [
  ["host:5000/zonewise:1.2.0", "1.2.0", true],
  ["host/zonewise:v1.2.0", "1.2.0", true],
  ["host/zonewise:1.2.0@sha256:0a1b", "1.2.0", true],
  ["host/zonewise:1.1.9", "1.1.9", false],
  ["host/zonewise:1.2.0-rc.1", "1.2.0-rc.1", false],
  ["host/zonewise:latest", undefined, undefined],
  ["host/zonewise@sha256:0a1b", undefined, undefined],
  ["host:5000/zonewise", undefined, undefined],
];
for (const [image, version, matches] of CASES)
  it(`version 1.2.0 beside ${image}: ${matches ?? "not known"}`, () => {
    const [found] = compareVersions("1.2.0", [{ name: "cronjob a/b", image }]);
    assert.deepEqual([found?.version, found?.matches], [version, matches]);
  });
