/**
 * `npm run audit`: fails on a known vulnerability in a package of the image. A registry without audits is reported, and
 * does not fail.
 */
import { spawnSync } from "node:child_process";

/** Status codes of registries without audits, mirrors for example. */
const UNSUPPORTED: ReadonlySet<number> = new Set([404, 405, 501]);

interface Report {
  /** By package, those that need it among them. */
  readonly vulnerabilities?: Readonly<Record<string, { readonly severity: string }>>;
  readonly message?: string;
  readonly statusCode?: number;
}

// Exits with 1 for vulnerabilities and failures alike: what it writes tells.
const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json"], { encoding: "utf8" });
const { vulnerabilities, message = "no message", statusCode = 0 } = JSON.parse(stdout) as Report;
if (vulnerabilities) {
  const found = Object.entries(vulnerabilities);
  for (const [name, { severity }] of found) console.error(`vulnerable: ${name} (${severity}); npm audit says more`);
  console.log(`audited: ${found.length} vulnerable packages`);
  process.exitCode = found.length === 0 ? 0 : 1;
} else if (UNSUPPORTED.has(statusCode)) {
  console.log(`NOT AUDITED: the registry has no audits, so known vulnerabilities would not show. npm says: ${message}`);
} else {
  console.error(`NOT AUDITED: the registry gave no answer. Try again. npm says: ${message}`);
  process.exitCode = 1;
}
