/**
 * The first `most` characters of a text, in memory of their own. A `slice` is kept as a reference into the whole text: a
 * cut value that is remembered would keep the 256 KiB that a user of the cluster may write.
 */
export const cut = (text: string, most: number): string =>
  text.length <= most ? text : Buffer.from(text.slice(0, most)).toString();
