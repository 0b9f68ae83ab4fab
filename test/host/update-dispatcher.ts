/**
 * The update dispatcher of a Bottlerocket host: its states, and what ends each action.
 *
 *   Idle --refresh--> Available --prepare--> Staged <--activate, deactivate--> Ready --reboot--> Idle
 */
import type { Clock } from "../emulator/clock.ts";

export type Command = "refresh" | "prepare" | "activate" | "deactivate";
export type State = "Idle" | "Available" | "Staged" | "Ready";

interface Last {
  readonly cmd_type: Command;
  readonly cmd_status: "Success" | "Failed";
  readonly timestamp: string;
  readonly exit_status: number;
  readonly stderr: string;
}

export interface Dispatcher {
  readonly state: () => State;
  /** True while an action runs. */
  readonly isLocked: () => boolean;
  /** Another client's action runs, until it is called with false. */
  readonly lock: (isLocked: boolean) => void;
  readonly offer: (version: string) => void;
  /** Begins an action, unless it is answered with `failure`; `exit` lets its process fail. The answer's HTTP status. */
  readonly begin: (command: Command, failure: "exit" | number | undefined) => number;
  /** As the host's API shows it; undefined before the first look for updates since the boot. */
  readonly status: (running: string) => object | undefined;
  /**
   * Ends all that runs, and forgets it: its files lie under /run. Returns the version that boots next, if there is one.
   */
  readonly restart: () => string | undefined;
}

const FROM: Readonly<Record<Command, readonly State[]>> = {
  refresh: ["Idle", "Available", "Staged", "Ready"],
  prepare: ["Available", "Staged"],
  activate: ["Staged"],
  deactivate: ["Ready"],
};

const image = (version: string) => ({ arch: "x86_64", variant: "aws-k8s-1.36", version });

const fresh = () => ({
  state: "Idle" as State,
  chosen: undefined as string | undefined,
  staged: undefined as string | undefined,
  last: undefined as Last | undefined,
});

interface DispatcherOptions {
  /** The version that the update repository offers; none if it is the one that runs. */
  readonly offers: string;
  readonly running: () => string;
  /** Milliseconds of each action; 5 by default. */
  readonly actionMs: Partial<Record<Command, number>>;
  readonly clock: Clock;
}

export function createDispatcher({ offers, running, actionMs, clock }: DispatcherOptions): Dispatcher {
  let offered = offers;
  let updates = fresh();
  let isLocked = false;
  let boots = 0;

  const EFFECTS: Readonly<Record<Command, () => void>> = {
    refresh() {
      updates.chosen = offered === running() ? undefined : offered;
      if (updates.state === "Idle" || updates.state === "Available")
        updates.state = updates.chosen === undefined ? "Idle" : "Available";
    },
    prepare() {
      updates.staged = updates.chosen;
      updates.state = "Staged";
    },
    activate: () => void (updates.state = "Ready"),
    deactivate: () => void (updates.state = "Staged"),
  };

  function run(command: Command, fails: boolean): void {
    const boot = boots;
    isLocked = true;
    clock.after(actionMs[command] ?? 5, () => {
      if (boot !== boots) return;
      isLocked = false;
      if (!fails) EFFECTS[command]();
      updates.last = {
        cmd_type: command,
        cmd_status: fails ? "Failed" : "Success",
        timestamp: new Date(clock.now()).toISOString(),
        exit_status: fails ? 1 : 0,
        stderr: fails ? `${command} went wrong` : "",
      };
    });
  }

  return {
    state: () => updates.state,
    isLocked: () => isLocked,
    lock: (next) => void (isLocked = next),
    offer: (next) => void (offered = next),
    begin(command, failure) {
      if (typeof failure === "number") return failure;
      if (command === "prepare" && updates.chosen === undefined) return 404;
      if (!FROM[command].includes(updates.state)) return 409;
      run(command, failure === "exit");
      return 204;
    },
    status: (version) =>
      updates.last && {
        update_state: updates.state,
        available_updates: offered === version ? [] : [offered],
        chosen_update: updates.chosen === undefined ? null : image(updates.chosen),
        active_partition: { image: image(version), next_to_boot: updates.state !== "Ready" },
        staging_partition:
          updates.staged === undefined
            ? null
            : { image: image(updates.staged), next_to_boot: updates.state === "Ready" },
        most_recent_command: updates.last,
      },
    restart() {
      const next = updates.state === "Ready" ? updates.staged : undefined;
      boots += 1;
      updates = fresh();
      isLocked = false;
      return next;
    },
  };
}
