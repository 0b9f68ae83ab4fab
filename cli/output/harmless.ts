/**
 * Texts from the cluster must not control the reader's terminal: any user can write messages, annotations and image
 * names.
 */

/** Kept: the colours of style.ts, and the redrawing of screen.ts at the start; also line breaks and tabs. */
const OURS = String.raw`^\u001B\[\d+A\u001B\[J|\u001B\[(?:3[12349]|90)m`;
/** Control characters, then characters that are invisible or change the order in which others are read. */
const CONTROL = String.raw`[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF]`;
const FOUND = new RegExp(`${OURS}|${CONTROL}`, "g");

/** Shows control characters instead of sending them; in a JSON document they keep their meaning. */
export const showControls = (text: string): string =>
  text.replaceAll(FOUND, (found) =>
    found.length > 1 ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
