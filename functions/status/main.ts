#!/usr/bin/env node
/**
 * Entry of the status page: configuration -> serve until SIGTERM -> exit code (0 well, 1 it could not serve, 2 bad
 * configuration).
 */
import { systemClock } from "../../infra/clock.ts";
import { runEntry } from "../../infra/process.ts";
import { runPlain } from "../http/server.ts";
import { composeStatusPage } from "./compose.ts";

await runEntry("the status page could not be served", async (stop) => {
  await runPlain(await composeStatusPage(process.env, systemClock), stop);
  return 0;
});
