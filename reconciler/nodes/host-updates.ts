/**
 * The updates of a Bottlerocket host, as its API reports them, and the next action on the way to a staged update.
 *
 *   Idle --refresh--> Available --prepare--> Staged --activate--> Ready --reboot--> Idle, in the new version
 *                        ^------prepare---------'  '<--deactivate--'
 *
 * Actions are asynchronous: 204 means that one has begun, the status is locked (423) until it ends, and then the last
 * command says how it ended.
 */
import * as z from "zod/mini";

const image = z.looseObject({ version: z.string() });
const partition = z.looseObject({ image: z.nullish(image), next_to_boot: z.nullish(z.boolean()) });
const command = z.looseObject({
  cmd_type: z.string(),
  cmd_status: z.string(),
  exit_status: z.nullish(z.number()),
  stderr: z.nullish(z.string()),
});

/** Tolerant: hosts of later versions say more. */
export const hostUpdateStatus = z.looseObject({
  update_state: z.enum(["Idle", "Available", "Staged", "Ready"]),
  chosen_update: z.nullish(image),
  staging_partition: z.nullish(partition),
  most_recent_command: z.nullish(command),
});
export type UpdateStatus = z.infer<typeof hostUpdateStatus>;

export type HostAction = "refresh" | "prepare" | "activate" | "deactivate";

type HostStep = { readonly act: HostAction } | { readonly done: true } | { readonly fail: string };

/**
 * The next action to make `wanted` the version that boots next; `undefined` is the status of a host that has not looked
 * for updates since its boot.
 */
export function nextHostStep(status: UpdateStatus | undefined, wanted: string): HostStep {
  return status ? STEPS[status.update_state](status, wanted) : { act: "refresh" };
}

type NextStep = (status: UpdateStatus, wanted: string) => HostStep;

const isStaged: (...facts: Parameters<NextStep>) => boolean = ({ staging_partition: staged }, wanted) =>
  staged?.image?.version === wanted;

const prepare: NextStep = ({ chosen_update: chosen }, wanted) =>
  chosen?.version === wanted
    ? { act: "prepare" }
    : { fail: `the host offers ${chosen?.version ?? "no version"}, and ${wanted} is wanted` };

const STEPS: Readonly<Record<UpdateStatus["update_state"], NextStep>> = {
  Idle: (status) => (isFresh(status) ? { fail: "the host offers no update" } : { act: "refresh" }),
  Available: prepare,
  Staged: (status, wanted) => (isStaged(status, wanted) ? { act: "activate" } : prepare(status, wanted)),
  Ready: (status, wanted) => (isStaged(status, wanted) ? { done: true } : { act: "deactivate" }),
};

const isFresh = ({ most_recent_command: last }: UpdateStatus): boolean =>
  last?.cmd_type === "refresh" && last.cmd_status === "Success";

/** Why the action has failed; undefined if it was the last command and succeeded. */
export function whyFailed(action: HostAction, status: UpdateStatus | undefined): string | undefined {
  const last = status?.most_recent_command;
  if (last?.cmd_type !== action) return `the host reports ${last?.cmd_type ?? "no command"} instead of ${action}`;
  if (last.cmd_status === "Success") return undefined;
  const said = [
    typeof last.exit_status === "number" && `exit status ${last.exit_status}`,
    last.stderr?.trim().slice(0, 300),
  ];
  return [`${action}: ${last.cmd_status}`, ...said.filter(Boolean)].join(", ");
}
