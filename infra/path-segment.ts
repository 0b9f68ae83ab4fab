/**
 * True for a text that can be a name in a path, by Kubernetes' own rule. Servers decode a path before they split it: a
 * name with an escaped slash would be an object and its subresource. Pure.
 */
export const isPathSegment = (text: string): boolean => /^(?!\.\.?$)[^/%]{1,253}$/.test(text);
