/** Composes the status page from the environment. */
import type { HttpFunction } from "@google-cloud/functions-framework";
import type { Clock } from "../../infra/clock.ts";
import type { Environment } from "../../infra/config/config.ts";
import { start } from "../../infra/start.ts";
import type { Plain } from "../http/server.ts";
import { createAnswer } from "./answer.ts";
import { createReader } from "./gather.ts";

/** Throws `BadConfiguration`. */
export async function composeStatusPage(env: Environment, machine: Clock): Promise<Plain> {
  const { configuration, log, cluster, clock } = await start(env, machine, { service: "zonewise-status-page" });
  const { namespace, namespaces, lease, statusPageHosts: hosts, clusterName, webhooks } = configuration;
  const scopes = namespaces === "*" ? [""] : namespaces;
  const place = { lease: { namespace, name: lease.name }, cronJob: "zonewise-reconciler" };
  const read = createReader({ cluster, now: clock.now, namespaces: scopes, ...place }, clock);
  const answer = createAnswer({ read, hosts, clusterName, log });
  return { what: "status page", log, configuration: webhooks, answer };
}

/** The status page as a target of functions-framework. Nothing happens before the first call. */
export function createStatusTarget(env: Environment, clock: Clock): HttpFunction {
  let page: Promise<Plain> | undefined;
  return async (request, response) => {
    page ??= composeStatusPage(env, clock);
    const { answer } = await page.catch((error: unknown) => {
      // The next call tries again: the environment does not change, but the files that it names may.
      page = undefined;
      throw error;
    });
    await answer(request, response);
  };
}
