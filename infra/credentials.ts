/** The credentials of a request, from the data of a Secret or from the user and password of a URL, and URLs without them. Pure. */

export interface QueryCredentials {
  /** The value of the `Authorization` header. */
  readonly authorization?: string;
  /** The texts that no message may show. */
  readonly secrets: readonly string[];
  readonly problem?: undefined;
}

/** The reason why there are no credentials, as the end of a sentence that names the Secret. */
interface NoCredentials {
  readonly problem: string;
}

/**
 * Reads the keys `token`, or `username` and `password`, of a Secret's base64 `data`. White space at the ends is
 * dropped: a file that became a Secret ends with a line break. A Secret with none of the keys is a problem: the query
 * would go without credentials.
 */
export function readCredentials(data: Readonly<Record<string, string>> = {}): QueryCredentials | NoCredentials {
  const read = (key: string): string =>
    Buffer.from(data[key] ?? "", "base64")
      .toString("utf8")
      .trim();
  const [username, password, token] = [read("username"), read("password"), read("token")];
  if (token !== "" && username + password !== "") return { problem: "has both a token and a username or password" };
  if (token !== "") return bearer(token);
  if (username === "" && password === "")
    return { problem: "has neither the key token nor the keys username and password" };
  if (username === "" || password === "") return { problem: `has no ${username === "" ? "username" : "password"}` };
  return basic(username, password);
}

/** The user and password of a URL; none without them. */
export function credentialsOf(url: URL): QueryCredentials {
  const { username, password } = url;
  return username + password === "" ? { secrets: [] } : basic(decode(username), decode(password));
}

/** The URL without its user and password: Node.js would send them as Basic authentication of its own. */
export function withoutCredentials(url: URL): URL {
  const bare = new URL(url);
  bare.username = "";
  bare.password = "";
  return bare;
}

/** The URL as messages may show it: without user-info, query and fragment, any of which may contain a password. */
export function redactUrl(url: string | URL): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

function bearer(token: string): QueryCredentials | NoCredentials {
  // RFC 9110, 5.5: anything else would end the header, or break it.
  if (!/^[\x21-\x7e]+$/.test(token)) return { problem: "has a token with characters that no HTTP header can carry" };
  return { authorization: `Bearer ${token}`, secrets: [token] };
}

function basic(username: string, password: string): QueryCredentials {
  const pair = Buffer.from(`${username}:${password}`).toString("base64");
  return { authorization: `Basic ${pair}`, secrets: [password, pair].filter((text) => text !== "") };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
