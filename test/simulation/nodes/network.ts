/**
 * The network of an agent: to the socket of its host, and to the node API. What it asks of the API server goes the way of
 * all processes.
 */
import type { OpenRequest } from "../../../infra/http.ts";
import type { Handler } from "../../../functions/http/rim.ts";
import { type Answering, openOver, reset, type Send, serverEnd } from "../../emulator/in-process.ts";
import type { Command } from "../../host/update-dispatcher.ts";
import type { Draw } from "../draw.ts";
import { answerWith } from "../answers.ts";
import { inOrder } from "../network.ts";
import type { Process } from "../process.ts";
import type { Schedule } from "../schedule.ts";
import type { Fault } from "../shape.ts";
import type { NodeHost } from "./node-host.ts";

export interface NodeApiServer {
  readonly process: Process;
  readonly routes: ReadonlyMap<string, Handler>;
}

export interface AgentNetworkOptions {
  readonly schedule: Schedule;
  readonly draw: Draw;
  readonly strikes: (fault: Fault, site: string) => boolean;
  readonly servers: () => readonly NodeApiServer[];
  /** A call of an agent that was answered, with its node. */
  readonly onCall: (agent: string, what: string) => void;
  /** The host has been asked to reboot by the agent, and does. */
  readonly onReboot: (host: NodeHost) => void;
}

const QUICK_MS = 3;
const SLOW_MS = [500, 3000, 15_000, 40_000];
/** Between the answer and the end of a host that reboots. */
const GOES_DOWN_MS = 5000;
/** For which another client's action locks a host. */
const LOCKED_MS = [1000, 20_000];

export function createAgentNetwork({ schedule, draw, strikes, servers, ...on }: AgentNetworkOptions) {
  const quick = (): number => 1 + draw.below(QUICK_MS);

  /** As `host-server.ts` does on a socket. */
  const toHost =
    (process: Process, host: NodeHost): Send =>
    (sent, client) => {
      const site = `agent ${sent.method} host${sent.path}`;
      const deliver = inOrder(process, quick);
      if (strikes("killBefore", site)) return process.kill();
      schedule.after(quick(), () => {
        if (!host.isUp()) return deliver(quick(), () => client.fail(reset("connect ECONNREFUSED")));
        const command = (/^\/actions\/([a-z]+)/.exec(sent.path)?.[1] ?? "") as Command | "reboot" | "";
        if (command !== "" && strikes("hostFails", site)) host.model.fail(command, draw.of(["exit", 500]));
        if (strikes("hostBusy", site)) lock(host);
        const isLost = strikes("hostLost", site);
        const lateMs = strikes("slowAnswer", site) ? draw.of(SLOW_MS) : 0;
        const { status, body, reboots } = host.model.answer(sent.method, sent.path);
        if (sent.method !== "GET") on.onCall(process.name, `${sent.method} host${sent.path} -> ${status}`);
        if (reboots) {
          on.onReboot(host);
          schedule.after(draw.between(10, GOES_DOWN_MS), host.reboot);
        }
        if (strikes("killAfter", site)) return process.kill();
        if (isLost) deliver(quick(), () => client.fail(reset()));
        else deliver(quick() + lateMs, () => answerWith(client, status, body));
      });
    };

  function lock({ model }: NodeHost): void {
    model.lock(true);
    schedule.after(draw.of(LOCKED_MS), () => model.lock(false));
  }

  const toNodeApi =
    (process: Process): Send =>
    (sent, client) => {
      const site = `agent ${sent.method} node-api${sent.path.replace("/bottlerocket-node-resource", "")}`;
      const deliver = inOrder(process, quick);
      const fail = (text?: string): void => deliver(quick(), () => client.fail(reset(text)));
      if (strikes("frozen", site)) process.freeze(draw.of([1000, 12_000, 45_000]));
      if (strikes("killBefore", site)) return process.kill();
      if (strikes("requestLost", site)) return fail();
      schedule.after(strikes("slowRequest", site) ? draw.of(SLOW_MS) : quick(), () => {
        const found = servers();
        if (client.closed && draw.chance(0.5)) return;
        if (found.length === 0 || strikes("webhookUnreachable", site)) return fail("connect ECONNREFUSED");
        if (strikes("serverError", site)) return deliver(quick(), () => answerWith(client, 502));
        const server = draw.of(found);
        const isLost = strikes("answerLost", site);
        const lateMs = strikes("slowAnswer", site) ? draw.of(SLOW_MS) : 0;
        const dies = strikes("killAfter", site);
        const answering: Answering = {
          head(status, headers) {
            on.onCall(process.name, `${sent.method} node-api${sent.path} -> ${status}`);
            if (dies) draw.of([process, server.process]).kill();
            if (isLost) fail();
            else deliver(quick() + lateMs, () => client.head(status, headers));
          },
          chunk: (data) => void (isLost || deliver(0, () => client.chunk(data))),
          end: () => void (isLost || deliver(0, () => client.end())),
          destroy: fail,
        };
        server.process.onDeath(fail);
        const handler = server.routes.get(sent.path);
        if (!handler) return fail(`no route ${sent.path}`);
        server.process.after(quick(), () => {
          const { message, response, close } = serverEnd(sent, answering);
          client.onClose(close);
          void handler(message, response);
        });
      });
    };

  return {
    openFor(process: Process, host: NodeHost): OpenRequest {
      const [asked, served] = [toHost(process, host), toNodeApi(process)];
      return openOver((sent, client) => (sent.host.startsWith("localhost") ? asked : served)(sent, client));
    },
  };
}
