/** Quantities of resources: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ */

const SUFFIXES: Readonly<Record<string, number>> = {
  "": 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** The number, as precisely as a double has it; undefined if the text is no quantity. */
export function parseQuantity(text: string): number | undefined {
  const [, number = "", suffix = ""] = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([a-zA-Z]{0,2})$/.exec(text) ?? [];
  const factor = SUFFIXES[suffix];
  return number === "" || factor === undefined ? undefined : Number(number) * factor;
}

/** The quantities by their names, without those that cannot be read. */
export function parseQuantities(texts: Readonly<Record<string, string>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(texts).flatMap(([name, text]) => {
      const amount = parseQuantity(text);
      return amount === undefined ? [] : [[name, amount]];
    }),
  );
}
