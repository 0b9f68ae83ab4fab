/**
 * `npm run build`: one self-contained file per entry in dist/, small and quick to start, and the list of the packages
 * that they contain.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build, type BuildOptions, type Metafile, type Plugin } from "esbuild";
import { formatSbom, type Lockfile } from "./sbom.ts";

/**
 * The entries to build, by their files in dist/ without the `.js`: a new entry is one more row here. Manifests name
 * these files, so that sources may move.
 */
export const ENTRIES: Readonly<Record<string, string>> = {
  "reconciler/main": "reconciler/run/main.ts",
  "reconciler/agent/main": "reconciler/nodes/agent/main.ts",
  "functions/index": "functions/index.ts",
  "functions/serve": "functions/serve.ts",
  "functions/nodes/main": "functions/nodes/main.ts",
  "functions/framework": "functions/framework.ts",
  "functions/status/main": "functions/status/main.ts",
  "infra/certs/main": "infra/certs/act/main.ts",
  "infra/certs/node-api": "infra/certs/act/node-api.ts",
  "cli/main": "cli/main.ts",
};

/** Modules that are imported dynamically, because few processes need them: each gets its own file. */
export const LAZY: Readonly<Record<string, string>> = {
  "lazy/generate": "infra/certs/act/generate.ts",
  "lazy/otel": "infra/tracing/act/otel.ts",
};

/**
 * Modules that client-node's KubeConfig imports but calls only to make typed API clients, which we do not use: its HTTP
 * client and its models, three quarters of a bundle. Each module lists the imported names.
 */
const UNUSED: Readonly<Record<string, readonly string[]>> = {
  undici: ["Agent", "ProxyAgent"],
  "./gen/index.js": ["createConfiguration", "ServerConfiguration"],
};

/** A stand-in throws when it is called; the build fails if a name is missing here. */
const leaveOutUnused: Plugin = {
  name: "leave out what is unused",
  setup(hooks) {
    hooks.onResolve({ filter: /^(undici|\.\/gen\/index\.js)$/ }, ({ path, importer }) =>
      importer.endsWith("client-node/dist/config.js") ? { path, namespace: "unused" } : undefined,
    );
    hooks.onLoad({ filter: /./, namespace: "unused" }, ({ path }) => ({
      contents: (UNUSED[path] ?? []).map((name) => standIn(name, path)).join("\n"),
    }));
  },
};

function standIn(name: string, from: string): string {
  const message = `${name} of ${from} was left out of this bundle: see UNUSED in infra/build.ts`;
  return `export function ${name}() { throw new Error(${JSON.stringify(message)}); }`;
}

/** Parts of prom-client that load Node.js modules of their own, which nothing else here needs. We use none of them. */
const UNUSED_METRICS = /^\.\/lib\/(cluster|pushgateway|defaultMetrics|summary|metricAggregators)$/;
const leaveOutUnusedMetrics: Plugin = {
  name: "leave out unused metrics",
  setup(hooks) {
    hooks.onResolve({ filter: UNUSED_METRICS }, ({ path, importer }) =>
      importer.endsWith("prom-client/index.js") ? { path, namespace: "unused-metrics" } : undefined,
    );
    hooks.onLoad({ filter: /./, namespace: "unused-metrics" }, () => ({ contents: "module.exports = {};" }));
  },
};

/**
 * An import of node:http reads all its exports, and one of them, WebSocket, then loads an HTTP client of its own: 25
 * ms. `getBuiltinModule` does not read them.
 */
const requireHttp: Plugin = {
  name: "require http",
  setup(hooks) {
    hooks.onResolve({ filter: /^(node:)?http$/ }, () => ({ path: "node:http", namespace: "required" }));
    hooks.onLoad({ filter: /./, namespace: "required" }, () => ({
      contents: `module.exports = process.getBuiltinModule("node:http");`,
    }));
  },
};

/**
 * Keeps our dynamic imports in the bundle, as their files are built as well. For bundles `depth` folders below dist/.
 */
const keepLazy = (depth: number): Plugin => ({
  name: "keep lazy imports",
  setup(hooks) {
    hooks.onResolve({ filter: /^\.\.?\/.*\.ts$/ }, ({ path, kind, resolveDir }) => {
      if (kind !== "dynamic-import") return undefined;
      const [out] = Object.entries(LAZY).find(([, file]) => join(resolveDir, path).endsWith(`/${file}`)) ?? [];
      if (out === undefined) return { errors: [{ text: `${path} is imported lazily and not in LAZY` }] };
      return { path: `${"../".repeat(depth)}${out}.js`, external: true };
    });
  },
});

/**
 * functions-framework hides its imports from bundlers, so that TypeScript leaves them as they are; one is of a package.
 */
const HIDDEN_IMPORT = "new Function('modulePath', 'return import(modulePath)')";
const showImports: Plugin = {
  name: "show the imports of functions-framework",
  setup(hooks) {
    hooks.onLoad({ filter: /functions-framework\/build\/src\/loader\.js$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      if (!source.includes(HIDDEN_IMPORT))
        return { errors: [{ text: `${path} no longer imports by ${HIDDEN_IMPORT}` }] };
      const shown = '((path) => (path === "read-package-up" ? import("read-package-up") : import(path)))';
      return { contents: source.replace(HIDDEN_IMPORT, shown) };
    });
  },
};

/** The options of all bundles, except their entries and plugins. */
const BUNDLE = {
  bundle: true,
  platform: "node",
  target: "node24",
  format: "esm",
  minify: true,
  legalComments: "none",
  // Its registry of functions is global to the module, so there must be only one copy.
  external: ["@google-cloud/functions-framework"],
  // For packages in CommonJS.
  banner: {
    js: 'import{createRequire as requireForBundle}from"node:module";const require=requireForBundle(import.meta.url);',
  },
} satisfies BuildOptions;

/**
 * Bundles entries: paths below `root`, by their files below `outdir` without the `.js`. Resolves with the inputs of
 * each bundle. Rejects if one cannot be built.
 */
export async function bundle(
  entries: Readonly<Record<string, string>>,
  root: string,
  outdir: string,
): Promise<Metafile> {
  const byDepth = Map.groupBy(Object.entries(entries), ([out]) => out.split("/").length - 1);
  const built = [...byDepth].map(async ([depth, some]) => {
    const plugins = [leaveOutUnused, leaveOutUnusedMetrics, requireHttp, keepLazy(depth), showImports];
    const entryPoints = some.map(([out, source]) => ({ in: source, out }));
    return (await build({ ...BUNDLE, absWorkingDir: root, entryPoints, outdir, plugins, metafile: true })).metafile;
  });
  const files = await Promise.all(built);
  return {
    inputs: Object.assign({}, ...files.map(({ inputs }) => inputs)),
    outputs: Object.assign({}, ...files.map(({ outputs }) => outputs)),
  };
}

/** Builds all entries of the image, and `sbom.cdx.json` in the folder where scanners of images look for it. */
export async function buildAll(root: string, outdir: string): Promise<void> {
  const metafile = await bundle({ ...ENTRIES, ...LAZY }, root, outdir);
  const lockfile = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8")) as Lockfile;
  await writeFile(join(outdir, "sbom.cdx.json"), formatSbom(metafile, lockfile));
}

if (import.meta.main) await buildAll(join(import.meta.dirname, ".."), join(import.meta.dirname, "../dist"));
