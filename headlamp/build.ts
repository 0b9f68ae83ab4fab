/**
 * `npm run headlamp`: bundles the plugin into headlamp/dist. Modules that Headlamp provides come from its `pluginLib`;
 * all others, with the decisions and the view of the status page, are bundled from this repository.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";

/** As `headlamp-plugin build` maps them (config/vite.config.mjs of @kinvolk/headlamp-plugin). */
const HOST: Readonly<Record<string, string>> = {
  react: "React",
  "react-redux": "ReactRedux",
  "react-router-dom": "ReactRouter",
  "@kinvolk/headlamp-plugin/lib": "",
  "@kinvolk/headlamp-plugin/lib/CommonComponents": "CommonComponents",
};

const takeFromHost: Plugin = {
  name: "take from Headlamp",
  setup(hooks) {
    hooks.onResolve({ filter: /^(react(-|\/|$)|@kinvolk\/)/ }, ({ path }) =>
      HOST[path] === undefined
        ? { errors: [{ text: `${path} is not in HOST of headlamp/build.ts` }] }
        : { path, namespace: "host" },
    );
    hooks.onLoad({ filter: /./, namespace: "host" }, ({ path }) => ({
      contents: `module.exports = window.pluginLib${HOST[path] ? `.${HOST[path]}` : ""};`,
    }));
  },
};

/** The text of main.js. Rejects if it cannot be built, for example because a module of Node.js is imported. */
export async function bundlePlugin(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "src/host/index.ts")],
    bundle: true,
    platform: "browser",
    target: "es2022",
    format: "iife",
    minify: true,
    legalComments: "none",
    write: false,
    plugins: [takeFromHost],
    // The host's tsconfig is not for the bundle: its paths lead to types.
    tsconfigRaw: {},
  });
  return outputFiles[0]?.text ?? "";
}

/**
 * The part of package.json that Headlamp reads: `devDependencies` states the version of Headlamp that the plugin is
 * made for.
 */
async function describePackage(): Promise<object> {
  const read = async (path: string) =>
    JSON.parse(await readFile(join(import.meta.dirname, path), "utf8")) as Record<string, unknown>;
  const { name, description, license, devDependencies } = await read("package.json");
  const { version } = await read("../package.json");
  return { name, version, description, license, main: "main.js", devDependencies };
}

/** Writes the two files that Headlamp loads. */
export async function buildPlugin(outdir: string): Promise<void> {
  await mkdir(outdir, { recursive: true });
  await writeFile(join(outdir, "main.js"), await bundlePlugin());
  await writeFile(join(outdir, "package.json"), `${JSON.stringify(await describePackage(), undefined, 2)}\n`);
}

if (import.meta.main) await buildPlugin(process.argv[2] ?? join(import.meta.dirname, "dist"));
