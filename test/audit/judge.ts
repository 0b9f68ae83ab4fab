/** Judges what `npm audit --json` says: each known vulnerability must be one that was looked at. */

/** A vulnerability that does not concern us. */
export interface Accepted {
  /** Such as `GHSA-xxxx-xxxx-xxxx`. */
  readonly advisory: string;
  /** Why not: which code of the package we do not reach, for example. */
  readonly reason: string;
}

export type AuditResult =
  /** The registry has no audits; `message` is npm's own. */
  | { readonly kind: "unsupported"; readonly message: string }
  /** It gave no answer this time. */
  | { readonly kind: "failed"; readonly message: string }
  /** `unexplained` holds a line each; `stale` the accepted advisories that concern no package now. */
  | { readonly kind: "answered"; readonly unexplained: readonly string[]; readonly stale: readonly string[] };

interface Advisory {
  readonly name: string;
  readonly severity: string;
  readonly title: string;
  readonly url: string;
  readonly range: string;
}

/** Status codes of registries without audits, mirrors for example. */
const UNSUPPORTED = new Set([404, 405, 501]);

interface Report {
  readonly message?: string;
  readonly statusCode?: number;
  /** By package; `via` names another package of this report, or has the advisory. */
  readonly vulnerabilities?: Readonly<Record<string, { readonly via: readonly (string | Advisory)[] }>>;
}

/** Throws if `output` is no JSON. */
export function judgeAudit(output: string, accepted: readonly Accepted[]): AuditResult {
  const { vulnerabilities, message = "no message", statusCode } = JSON.parse(output) as Report;
  if (vulnerabilities === undefined)
    return { kind: UNSUPPORTED.has(statusCode ?? 0) ? "unsupported" : "failed", message };
  const all = Object.values(vulnerabilities).flatMap(({ via }) => via.filter((one) => typeof one !== "string"));
  const found = new Map(all.map((advisory) => [advisory.url.split("/").at(-1) ?? "", advisory]));
  const known = new Set(accepted.map(({ advisory }) => advisory));
  return {
    kind: "answered",
    unexplained: [...found].filter(([id]) => !known.has(id)).map(([id, advisory]) => describe(id, advisory)),
    stale: [...known].filter((id) => !found.has(id)),
  };
}

const describe = (id: string, { name, range, severity, title }: Advisory): string =>
  `${id} (${severity}) ${name} ${range}: ${title}`;
