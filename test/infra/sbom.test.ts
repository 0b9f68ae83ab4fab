/** The list of what is in the bundles. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formatSbom, type Lockfile } from "../../infra/sbom.ts";

interface Component {
  readonly name: string;
  readonly version: string;
}

const locked = (version: string, license?: string) => ({
  version,
  ...(license && { license }),
  integrity: "sha512-AAH/",
});
const PACKAGES = {
  "": { version: "1.0.0", license: "Apache-2.0" },
  "node_modules/a": locked("1.2.3", "MIT"),
  "node_modules/@s/b": locked("2.0.0", "(MIT OR Apache-2.0)"),
  "node_modules/a/node_modules/@s/b": locked("3.0.0", "ISC"),
  "node_modules/dev": locked("4.0.0", "MIT"),
  "node_modules/unlicensed": locked("5.0.0"),
};
const LOCKFILE: Lockfile = { name: "zonewise", packages: PACKAGES };

/** The bill of one bundle, made of these files of so many bytes. */
function billOf(files: Readonly<Record<string, number>>): { readonly components: readonly Component[] } {
  const inputs = Object.fromEntries(Object.entries(files).map(([path, bytesInOutput]) => [path, { bytesInOutput }]));
  const outputs = { "main.js": { bytes: 1, inputs, imports: [], exports: [] } };
  return JSON.parse(formatSbom({ inputs: {}, outputs }, LOCKFILE)) as { components: Component[] };
}

describe("the bill of materials", () => {
  const tables: readonly [string, Readonly<Record<string, number>>, readonly string[]][] = [
    ["has each package once", { "node_modules/a/x.js": 3, "node_modules/a/y.js": 4 }, ["a 1.2.3"]],
    ["has no package of which nothing is left", { "node_modules/a/x.js": 0 }, []],
    ["has no file of our own", { "infra/log.ts": 7, "unused:undici": 7 }, []],
    ["knows scopes", { "node_modules/@s/b/dist/x.js": 1 }, ["@s/b 2.0.0"]],
    ["knows packages inside of packages", { "node_modules/a/node_modules/@s/b/x.js": 1 }, ["@s/b 3.0.0"]],
    ["knows packages outside of the folder that is built", { "../elsewhere/node_modules/a/x.js": 1 }, ["a 1.2.3"]],
    ["is sorted", { "node_modules/a/x.js": 1, "node_modules/@s/b/x.js": 1 }, ["@s/b 2.0.0", "a 1.2.3"]],
  ];
  for (const [name, files, expected] of tables)
    it(name, () =>
      assert.deepEqual(
        billOf(files).components.map((one) => `${one.name} ${one.version}`),
        expected,
      ),
    );

  it("says the version, the licence, the hash and the address of a package", () => {
    const [b, a] = billOf({ "node_modules/a/x.js": 1, "node_modules/@s/b/x.js": 1 }).components;
    assert.deepEqual(a, {
      type: "library",
      "bom-ref": "node_modules/a",
      name: "a",
      version: "1.2.3",
      hashes: [{ alg: "SHA-512", content: "0001ff" }],
      licenses: [{ license: { id: "MIT" } }],
      purl: "pkg:npm/a@1.2.3",
    });
    assert.partialDeepStrictEqual(b, {
      licenses: [{ expression: "(MIT OR Apache-2.0)" }],
      purl: "pkg:npm/%40s/b@2.0.0",
    });
  });

  for (const name of ["unlicensed", "unknown"])
    it(`cannot be written if the lockfile has no licence: ${name}`, () =>
      assert.throws(() => billOf({ [`node_modules/${name}/x.js`]: 1 }), /the lockfile has no licence of/));
});
