/** FNV-1a, 32 bits: spreads and tells apart; it protects nothing. */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value;
}

/** The same, and evenly spread even for names that differ in their last digit only (the finalizer of MurmurHash3). */
export function spreadHash(text: string): number {
  let value = hash(text);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
