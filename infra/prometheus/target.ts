/** The target of a query: the URL that a user wrote, and the hosts that an installation allows. Pure. */

/** A URL that can be queried, or the problem with it as the end of a sentence that names the URL's field. */
type QueryTarget =
  | { readonly url: URL; readonly problem?: undefined }
  | { readonly url?: undefined; readonly problem: string };

const MAX_LENGTH = 2048;

/**
 * Reads the base URL of a Prometheus; the path of the query API is added to its path. Its query is kept but for the
 * expression, and its fragment dropped. A URL without `://` means `http://` and the URL, as in `prom:9000/prefix`.
 * Stricter than the URL standard, which repairs backslashes and missing slashes.
 */
export function readQueryTarget(text: string): QueryTarget {
  if (text.length > MAX_LENGTH) return { problem: `has more than ${MAX_LENGTH} characters` };
  const full = text.includes("://") ? text : `http://${text}`;
  if (/[\s\\\p{Cc}]/u.test(text)) return { problem: "has a space, a backslash or a control character" };
  if (!/^https?:\/\//i.test(full)) return { problem: "has another scheme than http and https" };
  if (!/^https?:\/\/(?:[^/?#]*@)?[^/?#@:]/i.test(full) || !URL.canParse(full)) return { problem: "has no valid host" };
  const url = new URL(full);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/api/v1/query`;
  url.searchParams.delete("query");
  url.hash = "";
  return { url };
}

/** True if the host may be asked: `allowed` has its name, or its name and port. An empty list allows all hosts. */
export function isHostAllowed(url: URL, allowed: readonly string[]): boolean {
  const name = url.hostname.toLowerCase().replace(/\.$/, "");
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  return allowed.length === 0 || allowed.some((host) => host === name || host === `${name}:${port}`);
}
