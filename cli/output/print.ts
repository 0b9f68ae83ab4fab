/** Prints a result as the user wants it. */
import { dump } from "js-yaml";
import type { Session } from "../session.ts";

/** `value` for programs; `render` for people, with its line breaks. */
export function print({ output, io }: Pick<Session, "output" | "io">, value: unknown, render: () => string): void {
  io.write(format(output, value) ?? render());
}

/** Undefined for people. */
export function format(output: Session["output"], value: unknown): string | undefined {
  if (output === "json") return `${JSON.stringify(value, undefined, 2)}\n`;
  // Without what is undefined, which YAML cannot say.
  return output === "yaml" ? dump(JSON.parse(JSON.stringify(value)), { lineWidth: -1 }) : undefined;
}
