#!/usr/bin/env node
// What npm puts on the PATH, as `zonewise` and as `kubectl-zonewise`: the bundle, or in a clone without one the source.
import { existsSync } from "node:fs";

const bundle = new URL("../dist/cli/main.js", import.meta.url);
await import(existsSync(bundle) ? bundle.href : new URL("main.ts", import.meta.url).href);
