/** Plays the suite on the cluster in KUBECONFIG and writes what it answered: `node record.ts > expected.json`. */
import { readFileSync } from "node:fs";
import type { Kubeconfig } from "./client.ts";
import { record } from "./suite.ts";

const kubeconfig = JSON.parse(readFileSync(process.env["KUBECONFIG"] ?? "", "utf8")) as Kubeconfig;
process.stdout.write(`${JSON.stringify(await record(kubeconfig), undefined, 1)}\n`);
