/** The tools of a command: the cluster, the namespace, and the output. */
import type { Clock } from "../infra/clock.ts";
import type { Source } from "../infra/kubernetes/context.ts";
import type { NoTick } from "../reconciler/report/ticking.ts";
import type { ExitCode } from "./exit.ts";
import type { ReadSettings } from "./gather/settings.ts";
import type { Display } from "./output/text.ts";

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface Io extends Display {
  readonly write: (text: string) => void;
  /** For messages that are no result. */
  readonly warn: (text: string) => void;
  /** A person watches the output. */
  readonly isTty: boolean;
  /** The terminal's present size in characters; a person may resize it. Undefined without a terminal. */
  readonly size?: () => TerminalSize | undefined;
  /** Asks the person at the terminal; true only for a yes. Undefined if nobody can be asked. */
  readonly confirm?: (question: string) => Promise<boolean>;
}

export interface Session extends Source {
  readonly clock: Clock;
  /** "" for all. */
  readonly namespace: string;
  /** The settings of the installation that serves a namespace. */
  readonly settings: ReadSettings;
  /**
   * The reconcilers that do not tick, or whose ticking is unknown, at the start of the command; none if the command
   * reads them itself.
   */
  readonly noTicks: readonly NoTick[];
  readonly output: "table" | "json" | "yaml";
  readonly io: Io;
  /** Ends long calls and waits. */
  readonly signal: AbortSignal;
}

export interface Input {
  readonly args: readonly string[];
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
}

export interface Flag {
  /** As the parser reads it: `-o, --output <format>`. */
  readonly flag: string;
  readonly summary: string;
  readonly choices?: readonly string[];
  /** It may be given several times. */
  readonly repeats?: true;
}

export interface Command {
  readonly name: string;
  /** `[group]`: optional; `<nodes...>`: one or more. */
  readonly arguments: string;
  /** The heading in `--help`. */
  readonly group: "Look" | "Steer" | "Check";
  readonly summary: string;
  /** Its words after `zonewise`, and what they do. */
  readonly examples: readonly (readonly [words: string, meaning: string])[];
  readonly flags: readonly Flag[];
  /** The meanings of the exit codes. 2 means the same everywhere, and so does 4 where it is not among them. */
  readonly exits: Readonly<Partial<Record<ExitCode, string>>>;
  /** The command itself reads whether the reconcilers tick. */
  readonly asksTicking?: true;
  readonly run: (session: Session, input: Input) => Promise<ExitCode>;
}
