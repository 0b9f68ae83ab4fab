/** The arguments of a command: `--help` and what is wrong with them end it. */

/** What `read` gives. Ends the process with 2 and the usage if it throws, and with 0 if help was asked for. */
export function readOrExit<T extends { readonly help: boolean }>(read: () => T, usage: string): T {
  let options: T;
  try {
    options = read();
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
  if (!options.help) return options;
  console.log(usage);
  process.exit(0);
}

/** Throws for the first of these options that is given and is no whole number. */
export function requireWhole<K extends string>(
  values: Readonly<Partial<Record<K, unknown>>>,
  names: readonly K[],
): void {
  for (const name of names)
    if (values[name] !== undefined && !/^\d+$/.test(String(values[name])))
      throw new Error(`--${name} is a whole number, not ${JSON.stringify(values[name])}`);
}
