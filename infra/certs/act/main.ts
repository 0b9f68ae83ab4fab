#!/usr/bin/env node
/**
 * Entry of the certificate job: configuration -> Secret and CA bundles -> exit code (0 done, 1 incomplete, 2 bad
 * configuration).
 */
import { runEntry } from "../../process.ts";
import { runJob } from "./run-job.ts";

await runEntry("the certificate job failed", (stop) => runJob(process.env, { stop }));
