/**
 * Preloaded (`--import`) into a measured process: it finds the files of its ServiceAccount, which a pod has below
 * /var/run/secrets, in BENCH_ACCOUNT.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const { readFileSync } = fs;
fs.readFileSync = (path, ...rest) =>
  readFileSync(typeof path === "string" ? path.replace(MOUNT, process.env.BENCH_ACCOUNT ?? MOUNT) : path, ...rest);
syncBuiltinESMExports();
