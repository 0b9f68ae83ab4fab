#!/usr/bin/env node
/**
 * Entry of the webhook server: configuration -> certificate -> serve until SIGTERM -> drain -> exit code (0 well, 1 it
 * could not serve, 2 bad configuration).
 */
import { systemClock } from "../infra/clock.ts";
import { runEntry } from "../infra/process.ts";
import { composeFunctions } from "./compose.ts";
import { runServer } from "./http/server.ts";

await runEntry("the webhooks could not be served", async (stop) => {
  await runServer(await composeFunctions(process.env, systemClock), stop);
  return 0;
});
