/** Exit codes of the CLI, and errors of its caller (§18.3). */

export const EXIT = {
  /** It is done, there is nothing to do, the answer is yes, nothing is wrong. */
  ok: 0,
  /** It has stalled, there are steps, the answer is no, something is wrong. */
  no: 1,
  /** The command line or the kubeconfig is wrong; no request was sent to the cluster. */
  usage: 2,
  /** It was not done in time. */
  timeout: 3,
  /** The cluster could not be read or written: the answer is not known. */
  unknown: 4,
  /** Ctrl-C, as shells count it: 128 and the number of the signal. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/**
 * An error about an object that does not exist, or an action that no command can do: a sentence for users, perhaps with
 * a hint what to do.
 */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly hint: string | undefined;
  readonly exitCode: ExitCode;

  constructor(
    message: string,
    { hint, exitCode = EXIT.unknown }: { readonly hint?: string; readonly exitCode?: ExitCode } = {},
  ) {
    super(message);
    this.hint = hint;
    this.exitCode = exitCode;
  }
}

export const usageError = (message: string, hint?: string): CliError =>
  new CliError(message, { exitCode: EXIT.usage, ...(hint !== undefined && { hint }) });
