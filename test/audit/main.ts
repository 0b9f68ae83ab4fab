/**
 * `npm run audit`: fails on a known vulnerability in a package of the image that is not accepted below. A registry
 * without audits is reported, and does not fail.
 */
import { spawnSync } from "node:child_process";
import { type Accepted, judgeAudit } from "./judge.ts";

const ACCEPTED: readonly Accepted[] = [];

// Exits with 1 for vulnerabilities and failures alike: what it writes tells.
const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json"], { encoding: "utf8" });
const result = judgeAudit(stdout, ACCEPTED);
if (result.kind === "unsupported") {
  console.log(
    `NOT AUDITED: the registry has no audits, so known vulnerabilities would not show. npm says: ${result.message}`,
  );
} else if (result.kind === "failed") {
  console.error(`NOT AUDITED: the registry gave no answer. Try again. npm says: ${result.message}`);
  process.exitCode = 1;
} else {
  for (const line of result.unexplained)
    console.error(`vulnerable: ${line}. Update the package, or explain it in test/audit/main.ts`);
  for (const advisory of result.stale)
    console.error(`${advisory} concerns no package any more: remove it from test/audit/main.ts`);
  console.log(`audited: ${result.unexplained.length} unexplained, ${ACCEPTED.length} accepted`);
  process.exitCode = result.unexplained.length + result.stale.length === 0 ? 0 : 1;
}
