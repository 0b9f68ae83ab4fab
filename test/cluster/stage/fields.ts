/** Values as fields by their paths, `path.to.field`, and what differs between two of them. */

/** An empty map or list is a field, too. Values as JSON. */
export type Fields = Readonly<Record<string, string>>;

export const fieldsOf = (value: unknown, prefix = ""): Fields => Object.fromEntries(listFields(value, prefix));

function listFields(value: unknown, path: string): [string, string][] {
  if (typeof value !== "object" || value === null || Object.keys(value).length === 0)
    return [[path, JSON.stringify(value)]];
  const start = path === "" || path.endsWith(" ") ? path : `${path}.`;
  return Object.entries(value).flatMap(([key, child]) => listFields(child, `${start}${key}`));
}

/** Fields that are new or have another value; null for those that are gone. */
export function changesOf(from: Fields, to: Fields): Record<string, unknown> {
  const changed = Object.entries(to).filter(([path, value]) => from[path] !== value);
  const gone = Object.keys(from).filter((path) => !(path in to));
  return Object.fromEntries([
    ...changed.map(([path, value]) => [path, JSON.parse(value) as unknown]),
    ...gone.map((path) => [path, null]),
  ]);
}
