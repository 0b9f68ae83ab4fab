/** The style of text on a terminal. */
import { styleText } from "node:util";

/** `moving`: no action needed. `waiting`: a user asked for the wait, or time ends it. `bad`: somebody must act. */
export type Tone = "good" | "bad" | "moving" | "waiting" | "warning" | "plain";
type Style = (tone: Tone, text: string) => string;

/** Colours and width of what is displayed. */
export interface Display {
  readonly style: Style;
  /** Characters that a line may have; undefined without a terminal, and if nothing may be left out. */
  readonly width?: () => number | undefined;
}

const COLOURS = { good: "green", bad: "red", moving: "blue", waiting: "gray", warning: "yellow" } as const;

export const plain: Style = (_tone, text) => text;

/** Sets colours regardless of the environment: the caller has checked it. */
export const colourful: Style = (tone, text) =>
  tone === "plain" ? text : styleText(COLOURS[tone], text, { validateStream: false });
