/**
 * Texts of the cluster must not steer the reader's terminal: messages, annotations and image names are any
 * user's.
 */

/** The colours of style.ts, and at the start the redrawing of screen.ts, stay; line breaks and tabs, too. */
const OURS = String.raw`^\u001B\[\d+A\u001B\[J|\u001B\[3[1239]m`;
/** The second half is not seen, or changes the order in which other characters are read. */
const CONTROL = String.raw`[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF]`;
const FOUND = new RegExp(`${OURS}|${CONTROL}`, "g");

/** Shows control characters instead of sending them; in a JSON document they keep their meaning. */
export const showControls = (text: string): string =>
  text.replaceAll(FOUND, (found) =>
    found.length > 1 ? found : `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
