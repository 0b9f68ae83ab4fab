/** The log: one line an entry, JSON or logfmt. */

const LEVELS = { debug: 10, info: 20, warn: 30, error: 40 } as const;

export type LogLevel = keyof typeof LEVELS;
export type LogFormat = "json" | "logfmt";
export type LogFields = Readonly<Record<string, unknown>>;
type Write = (message: string, fields?: LogFields) => void;
export type Log = Readonly<Record<LogLevel, Write>>;

export interface LogOptions {
  /** Entries below it are dropped. */
  readonly level: LogLevel;
  /** JSON, unless said. */
  readonly format?: LogFormat;
  /** Takes a whole line, its end included. */
  readonly write: (line: string) => void;
  readonly now: () => Date;
}

/** A log whose entries carry `ts` (RFC 3339), `level`, `msg` and the fields; an Error among them shows its code, message and chain of causes. */
export function createLog({ level, format = "json", write, now }: LogOptions): Log {
  const entry =
    (of: LogLevel): Write =>
    (msg, fields) => {
      if (LEVELS[of] < LEVELS[level]) return;
      const json = encode({ ...fields, ts: now().toISOString(), level: of, msg });
      write(`${format === "json" ? json : toLogfmt(JSON.parse(json)).join(" ")}\n`);
    };
  return { debug: entry("debug"), info: entry("info"), warn: entry("warn"), error: entry("error") };
}

/** Writes to standard output and, before the process ends, waits until it is out. */
export const stdout = {
  write: (line: string): void => void process.stdout.write(line),
  flush: (): Promise<void> => new Promise((resolve) => process.stdout.write("", () => resolve())),
};

// A field that cannot be encoded (a cycle) must not take the process down with it.
function encode({ ts, level, msg, ...fields }: LogFields): string {
  try {
    return JSON.stringify({ ts, level, msg, ...fields }, showValue);
  } catch (error) {
    return JSON.stringify({ ts, level, msg, unloggable: String(error) });
  }
}

function showValue(_key: string, value: unknown): unknown {
  if (value instanceof Error) return showError(value);
  return typeof value === "bigint" ? String(value) : value;
}

/** Causes deeper than this are left out; a chain may even be a ring. */
const DEPTH = 5;

function showError(error: Error, depth = 1): LogFields {
  const code = "code" in error ? { code: error.code } : {};
  const shown = { ...code, message: error.message || error.name };
  if (error.cause === undefined || depth === DEPTH) return shown;
  return { ...shown, cause: error.cause instanceof Error ? showError(error.cause, depth + 1) : error.cause };
}

/** `key=value` pairs of what JSON holds, as the original's logger writes them; what is inside an object gets its path as key: `error.code=Timeout`. */
function toLogfmt(value: unknown, path = ""): string[] {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([key, inner]) => toLogfmt(inner, `${path}${path && "."}${key.replaceAll(/[\s="]/g, "_")}`));
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return [`${path}=${/^[^\s="\p{Cc}]+$/u.test(text) ? text : JSON.stringify(text)}`];
}
