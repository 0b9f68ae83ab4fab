/** Colours for terminals. */
import { styleText } from "node:util";

export type Tone = "good" | "bad" | "waiting" | "plain";
export type Style = (tone: Tone, text: string) => string;

const COLOURS = { good: "green", bad: "red", waiting: "yellow" } as const;

export const plain: Style = (_tone, text) => text;

/** Sets colours whatever the environment says: the caller has read it. */
export const colourful: Style = (tone, text) =>
  tone === "plain" ? text : styleText(COLOURS[tone], text, { validateStream: false });
