#!/usr/bin/env node
/**
 * Entry of the certificate job of the node API: as main.ts, and the agents and the definition of the shadows get the CA
 * bundle.
 */
import { runEntry } from "../../process.ts";
import { runJob } from "./run-job.ts";

await runEntry("the certificate job failed", (stop) => runJob(process.env, { stop, publishes: true }));
