#!/usr/bin/env node
/**
 * Entry of the node API: configuration -> certificate -> serve until SIGTERM -> drain -> exit code (0 well, 1 it could
 * not serve, 2 bad configuration).
 */
import { systemClock } from "../../infra/clock.ts";
import { runEntry } from "../../infra/process.ts";
import { runServer } from "../http/server.ts";
import { composeNodeApi } from "./compose.ts";

await runEntry("the node API could not be served", async (stop) => {
  await runServer(await composeNodeApi(process.env, systemClock), stop);
  return 0;
});
