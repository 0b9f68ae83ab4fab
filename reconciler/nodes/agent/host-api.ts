/**
 * The Bottlerocket host API over its unix socket. Any status that the host answers is a value; an error means that it
 * did not answer.
 */
import * as z from "zod/mini";
import { RolloutError } from "../../../infra/errors.ts";
import { type Carrier, exchange, type HttpResponse, withinDeadline } from "../../../infra/http.ts";
import { type HostAction, hostUpdateStatus, type UpdateStatus } from "../host-updates.ts";

export interface HostApi {
  /** The version that runs. Rejects if the host does not say it. */
  readVersion(): Promise<string>;
  /** `busy` while an action runs; undefined before the first check for updates since the boot. */
  readUpdates(): Promise<UpdateStatus | "busy" | undefined>;
  act(action: HostAction | "reboot"): Promise<Begun>;
}

/** The host's answer to an action: it has begun, another one runs, or the reason why it does not begin. */
type Begun = "begun" | "busy" | { readonly refused: string };

/** Milliseconds until the host must have answered; its actions continue afterwards. */
const ANSWER_MS = 30_000;

const PATHS: Readonly<Record<HostAction | "reboot", string>> = {
  refresh: "/actions/refresh-updates",
  prepare: "/actions/prepare-update",
  activate: "/actions/activate-update",
  deactivate: "/actions/deactivate-update",
  reboot: "/actions/reboot",
};

const osInfo = z.looseObject({ version_id: z.string().check(z.minLength(1)) });

export function createHostApi(socketPath: string, { open, clock }: Carrier = {}): HostApi {
  const ask = (method: "GET" | "POST", path: string): Promise<HttpResponse> =>
    withinDeadline(`the host's API at ${socketPath}`, { timeoutMs: ANSWER_MS, clock }, (signal) =>
      exchange(new URL(path, "http://localhost"), { socketPath, method, open, signal }),
    );
  return {
    async readVersion() {
      const { status, text } = await ask("GET", "/os");
      if (status !== 200) throw unexpected("/os", status, text);
      return osInfo.parse(JSON.parse(text)).version_id;
    },
    async readUpdates() {
      const { status, text } = await ask("GET", "/updates/status");
      if (status === 423) return "busy";
      if (status === 404) return undefined;
      if (status !== 200) throw unexpected("/updates/status", status, text);
      return hostUpdateStatus.parse(JSON.parse(text));
    },
    async act(action) {
      const { status, text } = await ask("POST", PATHS[action]);
      if (status >= 200 && status < 300) return "begun";
      return status === 423
        ? "busy"
        : { refused: `${action}: the host answers ${status} ${text.trim().slice(0, 300)}`.trim() };
    },
  };
}

function unexpected(path: string, status: number, text: string): RolloutError {
  return new RolloutError("ServerError", `the host answers ${status} to ${path}: ${text.trim().slice(0, 300)}`, {
    status,
  });
}
