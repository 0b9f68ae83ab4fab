/**
 * A program with the original's flags, for trying `compare` where the original is not to be had: our server. It allows
 * an eviction a second time at once by its own path alone: ORIGINAL_EVICTION_PATH=/admission/mutate-pod-eviction.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Flags of which our server has no variable: what they ask for is so. */
const LEFT_OUT = ["SERVER_TLS_ENABLED"];

/** Writes an executable that turns flags into variables and runs `serve`, our server's entry; resolves with its path. */
export async function writeStandIn(folder: string, serve: string): Promise<string> {
  const file = join(folder, "stand-in.mjs");
  const text = `#!${process.execPath}
for (const flag of process.argv.slice(2)) {
  const [, name = "", value = ""] = /^-([^=]+)=(.*)$/.exec(flag) ?? [];
  process.env[name.toUpperCase().replaceAll(/[.-]/g, "_")] = value;
}
for (const name of ${JSON.stringify(LEFT_OUT)}) delete process.env[name];
process.env.SERVER_ADDRESS = "127.0.0.1";
await import(${JSON.stringify(serve)});
`;
  await writeFile(file, text, { mode: 0o755 });
  return file;
}
