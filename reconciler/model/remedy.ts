/**
 * The form of a remedy: text in lines, a sentence and below it the command that it speaks of, alone on its line, ready to
 * paste. Pure.
 */

export const how = (sentence: string, command: string): string => `${sentence}:\n${command}`;

/** Remedies one below the other; "" for one that does not apply. */
export const either = (...remedies: readonly string[]): string => remedies.filter(Boolean).join("\nor ");

export const isCommand = (line: string): boolean => /^(?:kubectl|zonewise|echo) /.test(line);

interface Placed {
  readonly namespace: string;
}

export const kubectl = ({ namespace }: Placed, command: string): string => `kubectl -n ${namespace} ${command}`;
export const zonewise = ({ namespace }: Placed, command: string): string => `zonewise -n ${namespace} ${command}`;
