/**
 * A planted file: its name in the test, its path, its content, and the rule that names it; undefined for what is
 * allowed.
 */
export type Row = readonly [name: string, path: string, content: string, rule?: RegExp];
