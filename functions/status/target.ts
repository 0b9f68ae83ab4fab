/** The status page as a target of functions-framework. Nothing happens before the first call. */
import type { HttpFunction } from "@google-cloud/functions-framework";
import type { Clock } from "../../infra/clock.ts";
import type { Environment } from "../../infra/config/config.ts";
import { composeStatusPage, type StatusPage } from "./compose.ts";

export function createStatusTarget(env: Environment, clock: Clock): HttpFunction {
  let page: Promise<StatusPage> | undefined;
  return async (request, response) => {
    page ??= composeStatusPage(env, clock);
    const { answer } = await page.catch((error: unknown) => {
      // The next call tries again: the environment does not change, the files that it names may.
      page = undefined;
      throw error;
    });
    await answer(request, response);
  };
}
