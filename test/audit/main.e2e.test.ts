/** What `npm run audit` does with the answer of a registry: this is what the gate goes by. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { join } from "node:path";
import { it } from "node:test";
import { listen } from "../loopback.ts";

const MAIN = join(import.meta.dirname, "main.ts");

interface Outcome {
  readonly code: number;
  readonly text: string;
}

/** Runs it against a registry that answers audits so, and everything else with 404. */
async function auditAt(status: number, advisories: object): Promise<Outcome> {
  const server = createServer((request, response) => {
    const isAudit = request.method === "POST" && request.url === "/-/npm/v1/security/advisories/bulk";
    request
      .resume()
      .on("end", () => response.writeHead(isAudit ? status : 404).end(JSON.stringify(isAudit ? advisories : {})));
  });
  const registry = `http://127.0.0.1:${await listen(server)}/`;
  try {
    return await new Promise((resolve) => {
      execFile(
        process.execPath,
        [MAIN],
        { env: { ...process.env, npm_config_registry: registry, npm_config_fetch_retries: "0" } },
        (error, stdout, stderr) =>
          resolve({ code: typeof error?.code === "number" ? error.code : 0, text: stdout + stderr }),
      );
    });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const advisory = (id: string) => ({
  id: 1,
  url: `https://github.com/advisories/${id}`,
  title: "it leaks",
  severity: "high",
  vulnerable_versions: "*",
  cwe: [],
  cvss: { score: 7, vectorString: null },
});

it("fails on a vulnerability of a package in the image", async () => {
  const { code, text } = await auditAt(200, { jose: [advisory("GHSA-1")] });
  assert.match(text, /vulnerable: jose \(high\)/);
  assert.equal(code, 1);
});

it("succeeds where the registry knows none", async () => {
  const { code, text } = await auditAt(200, {});
  assert.match(text, /audited: 0 vulnerable/);
  assert.equal(code, 0, text);
});

it("says that it did not audit where the registry has no audits", async () => {
  const { code, text } = await auditAt(405, {});
  assert.match(text, /NOT AUDITED: .*405/);
  assert.equal(code, 0, text);
});

it("fails where the registry has audits and gives no answer", async () => {
  const { code, text } = await auditAt(500, {});
  assert.match(text, /NOT AUDITED: the registry gave no answer/);
  assert.equal(code, 1);
});
