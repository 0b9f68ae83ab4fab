import { spawnSync } from "node:child_process";

spawnSync("true");
process.exit(0);
