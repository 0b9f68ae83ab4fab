/** RBAC rights, as a drill asks for them. Pure. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  /** The object's name; without it, the right is for all objects. */
  readonly name?: string;
  /** Without it, the right is for the whole cluster. */
  readonly namespace?: string;
}

/** `verb group/resource[/subresource]`, the core group as "". */
export function readRight(text: string): Right {
  const [verb = "", path = ""] = text.split(" ");
  const [group = "", resource = "", subresource] = path.split("/");
  return { verb, group, resource, ...(subresource !== undefined && { subresource }) };
}

export const describeRight = ({ verb, group, resource, subresource }: Right): string =>
  `${verb} ${resource}${subresource === undefined ? "" : `/${subresource}`}${group === "" ? "" : `.${group}`}`;
