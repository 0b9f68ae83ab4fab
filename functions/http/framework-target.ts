/**
 * Serves a webhook as a target of functions-framework. The framework reads and parses the whole body (up to 1 GiB)
 * before it calls the function, answers a body that it cannot parse with a page that shows a stack trace, and exits at
 * SIGTERM with requests unanswered. So the rim takes over the reading of the body and the handling of signals.
 */
import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage, Server } from "node:http";
import { parseArgs } from "node:util";
import type { HttpFunction } from "@google-cloud/functions-framework";
import { systemClock } from "../../infra/clock.ts";
import { end, END_SIGNALS, giveUp } from "../../infra/process.ts";
import { serveWebhook } from "./admission.ts";
import { composeFunctions, type FunctionsComposition } from "../compose.ts";
import type { Webhook } from "./webhook.ts";
import {
  AFTERWARDS_MS,
  CONNECTION_TIMEOUTS,
  countRequests,
  type CountedServer,
  finishRequests,
  healthListener,
} from "./server.ts";

/** The function of this name. Only the process that was started for this target builds the webhook. */
export function asTarget(name: Webhook["name"]): HttpFunction {
  if (chosenTarget() !== name) return () => Promise.reject(new Error(`${name} is not the target of this process`));
  const composition = composeFunctions(process.env, systemClock);
  void composition.catch((error: unknown) => giveUp("the webhook could not be started", error));
  let adopted = false;
  subscribe("http.server.request.start", (message) => {
    const { request, server } = message as { request: IncomingMessage; server: Server };
    hideBody(request);
    if (adopted) return;
    adopted = true;
    adopt(server, composition);
  });
  const serving = composition.then(({ webhooks, rim, metrics }) => {
    const webhook = webhooks.find((candidate) => candidate.name === name);
    if (!webhook) throw new Error(`there is no webhook ${name}`);
    return { webhook: serveWebhook(webhook, rim), health: healthListener(metrics, () => true) };
  });
  return async (request, response) => {
    const handlers = await serving;
    if (request.method === "GET") handlers.health(request, response);
    else await handlers.webhook(request, response);
  };
}

/** The flag, otherwise the environment, as in the framework. */
function chosenTarget(): string | undefined {
  const { target } = parseArgs({ options: { target: { type: "string" } }, strict: false }).values;
  return typeof target === "string" ? target : process.env["FUNCTION_TARGET"];
}

/** The framework's parsers skip a request whose headers announce no body, and leave the stream unread. */
function hideBody({ headers }: IncomingMessage): void {
  delete headers["content-length"];
  delete headers["transfer-encoding"];
}

/** Replaces the framework's timeouts of connections and its signal handlers, which exist once it listens. */
function adopt(server: Server, composition: Promise<FunctionsComposition>): void {
  Object.assign(server, CONNECTION_TIMEOUTS);
  const counted = countRequests(server);
  for (const signal of END_SIGNALS) {
    process.removeAllListeners(signal);
    process.once(signal, () => void drainAndEnd(counted, composition));
  }
}

async function drainAndEnd(server: CountedServer, composition: Promise<FunctionsComposition>): Promise<void> {
  const { configuration, rim } = await composition;
  const { clock, log, tasks, tracer } = rim;
  log.info("draining");
  await finishRequests(server, tasks, { graceMs: configuration.requestTimeoutMs + AFTERWARDS_MS, clock });
  await tracer?.flush();
  log.info("drained");
  await end(0);
}
