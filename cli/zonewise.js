#!/usr/bin/env node
// What npm puts on the PATH, as `zonewise` and as `kubectl-zonewise`: the bundle, or in a clone without one the source.
import { existsSync } from "node:fs";

const bundle = new URL("../dist/cli/main.js", import.meta.url);
const isBuilt = existsSync(bundle);
if (isBuilt || process.features.typescript)
  await import(isBuilt ? bundle.href : new URL("main.ts", import.meta.url).href);
else {
  console.error(
    `zonewise is not built, and Node.js ${process.versions.node} cannot run its source: npx --no -- zonewise in the clone, or npm run build first`,
  );
  process.exitCode = 2;
}
