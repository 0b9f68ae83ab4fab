/** What is installed is what was looked at: exact versions, and a hash of each package. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

const read = (file: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, "../..", file), "utf8"));

it("package.json names exact versions", () => {
  const { dependencies, devDependencies } = read("package.json") as Record<
    "dependencies" | "devDependencies",
    Record<string, string>
  >;
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies }))
    assert.match(version, /^\d+\.\d+\.\d+$/, name);
});

it("the lockfile has a hash of every package of the image, and no registry's address", () => {
  const { packages } = read("package-lock.json") as {
    packages: Record<string, { dev?: boolean; integrity?: string; resolved?: string }>;
  };
  for (const [folder, { dev, integrity, resolved }] of Object.entries(packages)) {
    if (folder !== "" && !dev) assert.match(integrity ?? "", /^sha512-/, folder);
    assert.equal(resolved, undefined, folder);
  }
});
