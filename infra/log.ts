/** The log: one line an entry, as JSON or logfmt. */
import { isFields } from "./json.ts";

const LEVELS = { debug: 10, info: 20, warn: 30, error: 40 } as const;

export type LogLevel = keyof typeof LEVELS;
export type LogFormat = "json" | "logfmt";
export type LogFields = Readonly<Record<string, unknown>>;
/** A function is called only if the entry is written: for frequent entries that are often below the level. */
export type LazyFields = LogFields | (() => LogFields);
type Write = (message: string, fields?: LazyFields) => void;
export type Log = Readonly<Record<LogLevel, Write>>;

interface LogOptions {
  /** Entries below this level are dropped. */
  readonly level: LogLevel;
  /** JSON by default. */
  readonly format?: LogFormat;
  /** Receives a whole line with its line break. */
  readonly write: (line: string) => void;
  readonly now: () => Date;
}

/**
 * A log whose entries have `ts` (RFC 3339), `level`, `msg` and the fields; an Error is written as code, message and
 * chain of causes.
 */
export function createLog({ level, format = "json", write, now }: LogOptions): Log {
  const entry =
    (of: LogLevel): Write =>
    (msg, fields) => {
      if (LEVELS[of] < LEVELS[level]) return;
      const json = encode({ ...readFields(fields), ts: now().toISOString(), level: of, msg });
      write(`${format === "json" ? json : toLogfmt(JSON.parse(json)).join(" ")}\n`);
    };
  return { debug: entry("debug"), info: entry("info"), warn: entry("warn"), error: entry("error") };
}

export const readFields = (fields: LazyFields = {}): LogFields => (typeof fields === "function" ? fields() : fields);

/** Writes to standard output; `flush` waits until all is written. */
export const stdout = {
  write: (line: string): void => void process.stdout.write(line),
  flush: (): Promise<void> => new Promise((resolve) => process.stdout.write("", () => resolve())),
};

// A field that cannot be encoded (a cycle) must not end the process.
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

/** Deeper causes are left out; a chain of causes may be circular. */
const DEPTH = 5;

function showError(error: Error, depth = 1): LogFields {
  const code = "code" in error ? { code: error.code } : {};
  const shown = { ...code, message: error.message || error.name };
  if (error.cause === undefined || depth === DEPTH) return shown;
  return { ...shown, cause: error.cause instanceof Error ? showError(error.cause, depth + 1) : error.cause };
}

/**
 * `key=value` pairs in the format of the original's logger; a nested field has its path as key: `error.code=Timeout`.
 */
function toLogfmt(value: unknown, path = ""): string[] {
  if (isFields(value)) {
    return Object.entries(value).flatMap(([key, inner]) =>
      toLogfmt(inner, `${path}${path && "."}${key.replaceAll(/[\s="]/g, "_")}`),
    );
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return [`${path}=${/^[^\s="\p{Cc}]+$/u.test(text) ? text : JSON.stringify(text)}`];
}
