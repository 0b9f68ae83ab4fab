/** docs/flags.md names every flag of the original, with our variable for it or the reason why there is none (§8.2). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { findUnknown } from "../../infra/config/config.ts";
import type { Variable } from "../../infra/config/variable-schemas.ts";
import { VARIABLE_ROWS } from "../../infra/config/variables.ts";

const text = readFileSync(join(import.meta.dirname, "../../docs/flags.md"), "utf8");
const ROW = /^\| `-(?<flag>[^`]+)` \| (?<theirs>.*) \| (?<variable>.*) \| (?<ours>.*) \|$/gm;
const rows = [...text.matchAll(ROW)].map(({ groups = {} }) => groups);
const variables: ReadonlyMap<string, Variable> = new Map(VARIABLE_ROWS);

const FLAGS = `
  kubernetes.api-url kubernetes.client-burst kubernetes.client-qps kubernetes.client-timeout kubernetes.cluster-domain kubernetes.config-file
  kubernetes.namespace kubernetes.pod-name leader-election.enabled leader-election.lease-duration leader-election.lease-name
  leader-election.renew-deadline leader-election.retry-period log.format log.level pods.client-timeout reconcile.interval server-tls.cert-file server-tls.enabled server-tls.key-file
  server-tls.port server-tls.request-timeout server-tls.self-signed-cert.dns-name server-tls.self-signed-cert.enabled
  server-tls.self-signed-cert.expiration server-tls.self-signed-cert.org server-tls.self-signed-cert.secret-name
  server.cluster-validation.http.enabled server.cluster-validation.http.excluded-paths server.cluster-validation.http.excluded-user-agents
  server.cluster-validation.http.soft-validation server.port use-zone-tracker webhooks.update-ca-bundle zone-tracker.config-map-name
  zpdb.pod-ready-annotation-patch-timeout`
  .trim()
  .split(/\s+/);

describe("the table of the original's flags", () => {
  it("has each of them once", () => assert.deepEqual(rows.map(({ flag }) => flag).toSorted(), FLAGS.toSorted()));

  for (const { flag = "", variable = "", ours } of rows) {
    const name = flag.toUpperCase().replaceAll(/[.-]/g, "_");
    const row = variables.get(name);
    if (row) {
      it(`-${flag} is ${name}, with our default`, () =>
        assert.deepEqual([variable, ours], [`\`${name}\``, row.default === undefined ? "" : `\`${row.default}\``]));
    } else {
      it(`-${flag} has no variable, says why, and ${name} is refused`, () => {
        assert.match(variable, /^none: .+/);
        assert.equal(findUnknown([name]).length, 1);
      });
    }
  }

  it("names the old names", () => {
    for (const [, { oldName }] of VARIABLE_ROWS)
      assert.ok(oldName === undefined || text.includes(`\`${oldName}\``), oldName);
  });
});
