/** Text that users write, and that may deceive. Pure. */

/** Invisible characters, and characters that change the order in which others are read: any user can write messages. */
const UNSEEN = /[\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF]/g;

/** The same text, with each of them as its code: `\u202e`. */
export const showUnseen = (text: string): string =>
  text.replaceAll(UNSEEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
