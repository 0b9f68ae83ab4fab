/** What a command works with: the cluster, the namespace, and where it writes. */
import type { Clock } from "../infra/clock.ts";
import type { Source } from "../infra/kubernetes/actor.ts";
import type { ExitCode } from "./exit.ts";
import type { Settings } from "./gather/settings.ts";
import type { Style } from "./output/style.ts";

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface Io {
  readonly write: (text: string) => void;
  /** For messages that are no result. */
  readonly warn: (text: string) => void;
  /** A person watches the output. */
  readonly isTty: boolean;
  /** The terminal's size in characters now; a person may resize it. Undefined without a terminal. */
  readonly size?: () => TerminalSize | undefined;
  readonly style: Style;
}

export interface Session extends Source {
  readonly clock: Clock;
  /** "" for all. */
  readonly namespace: string;
  /** The settings of the installation that serves a namespace. */
  readonly settings: (namespace: string) => Promise<Settings>;
  readonly output: "table" | "json" | "yaml";
  readonly io: Io;
  /** Ends what lasts. */
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
  /** What its value is, for completions. */
  readonly completes?: Completes;
}

/** What the words after a command are, for completions. */
export type Completes = "groups" | "zones" | "pods" | "nodes" | "phasedrollouts" | "namespaces" | "objects";

export interface Command {
  readonly name: string;
  /** `[group]`: optional; `<nodes...>`: one or more. */
  readonly arguments: string;
  readonly summary: string;
  readonly flags: readonly Flag[];
  /** What the exit codes mean, apart from 2 and 4, which mean the same everywhere. */
  readonly exits: Readonly<Partial<Record<ExitCode, string>>>;
  readonly completes?: Completes;
  readonly run: (session: Session, input: Input) => Promise<ExitCode>;
}
