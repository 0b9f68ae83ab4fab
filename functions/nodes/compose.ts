/** Composes the node API from the environment. */
import { randomUUID } from "node:crypto";
import type { Environment } from "../../infra/config/config.ts";
import type { Machine } from "../../infra/machine.ts";
import { start } from "../../infra/start.ts";
import { ROUTES } from "../../reconciler/nodes/routes.ts";
import { createBackgroundTasks, createBodyReader } from "../http/rim.ts";
import type { Served } from "../http/server.ts";
import { serveConversion } from "./crd-convert.ts";
import { serveNodeApi } from "./node-api.ts";
import { showNodes } from "./show-nodes.ts";

/** Bytes of what an agent sends, whose shadow's status has 2 kB. */
const MAX_REPORT = 3 * 1024 * 1024;

/** Throws `BadConfiguration`. */
export async function composeNodeApi(env: Environment, machine: Machine): Promise<Served> {
  const { configuration, log, metrics, cluster, clock, tracer } = await start(env, machine, {
    service: "zonewise-node-api",
  });
  const { namespace, webhooks } = configuration;
  const tasks = createBackgroundTasks();
  const { requestTimeoutMs } = webhooks;
  const readBody = createBodyReader(MAX_REPORT);
  const rim = { clock, log, metrics: metrics.webhooks, tracer, tasks, readBody, requestTimeoutMs };
  const routes = serveNodeApi({ rim, cluster, namespace });
  const identity = `${configuration.identity ?? "node-api"}_${randomUUID()}`;
  const shown = showNodes({ cluster, clock, log, metrics, identity, namespace });
  return {
    configuration: webhooks,
    metrics: shown,
    rim,
    routes: new Map([...routes, [ROUTES.convert.path, serveConversion(rim)]]),
  };
}
