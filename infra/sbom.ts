/**
 * The software bill of materials of the bundles (CycloneDX 1.5): each package with bytes in them, at the version in the
 * lockfile. The same bundles and lockfile give the same text: it contains neither a time nor a serial number.
 */
import type { Metafile } from "esbuild";

interface LockedPackage {
  readonly version: string;
  /** SPDX: an identifier, or an expression. */
  readonly license?: string;
  /** Subresource integrity: the algorithm, and the hash of the package's archive in base64. */
  readonly integrity?: string;
}

export interface Lockfile {
  readonly name: string;
  /** By their folders: `node_modules/a`, `node_modules/a/node_modules/b`; the project itself is "". */
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

/** The innermost package that a file belongs to. */
const PACKAGE = /(?<folder>node_modules\/(?:.*\/node_modules\/)?(?<name>(?:@[^/]+\/)?[^/]+))\//;

/** Throws if a package has no version or no licence in the lockfile. */
export function formatSbom(metafile: Metafile, { name, packages }: Lockfile): string {
  const components = findPackages(metafile).map(([folder, name]) => describe(folder, name, packages[folder]));
  const own = describe("", name, packages[""]);
  const sbom = {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: { lifecycles: [{ phase: "build" }], component: { ...own, type: "application" } },
    components,
  };
  return `${JSON.stringify(sbom, undefined, 2)}\n`;
}

/** Folders and names of the packages in the bundles, sorted; one file may be in several bundles. */
function findPackages({ outputs }: Metafile): readonly (readonly [string, string])[] {
  const files = Object.values(outputs).flatMap(({ inputs }) => Object.entries(inputs));
  const bundled = files.filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const packages = bundled.flatMap(([path]) => {
    const { folder, name } = PACKAGE.exec(path)?.groups ?? {};
    return folder === undefined || name === undefined ? [] : [[folder, name] as const];
  });
  return [...new Map(packages)].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function describe(folder: string, name: string, locked: LockedPackage | undefined): object {
  if (locked?.license === undefined) throw new Error(`the lockfile has no licence of ${name} (${folder})`);
  const { version, license, integrity } = locked;
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  return {
    type: "library",
    "bom-ref": folder || name,
    name,
    version,
    ...(integrity && { hashes: [hashOf(integrity)] }),
    licenses: [/^[\w.+-]+$/.test(license) ? { license: { id: license } } : { expression: license }],
    purl,
  };
}

function hashOf(integrity: string): object {
  const [algorithm = "", base64 = ""] = integrity.split("-");
  return { alg: algorithm.replace("sha", "SHA-"), content: Buffer.from(base64, "base64").toString("hex") };
}
