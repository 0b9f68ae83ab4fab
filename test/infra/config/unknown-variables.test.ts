/** Unknown variables: refused ones, and ones that only cause a warning. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findMisspelt, findUnknown, readConfiguration, warnOfVariables } from "../../../infra/config/config.ts";
import { createLog } from "../../../infra/log.ts";

/** Variables from other programs' envFrom and injectors. */
const OTHERS = [
  "KUBERNETES_CLUSTER_NAME",
  "KUBERNETES_CONFIG_PATH",
  "LEASE_ID",
  "LOG_FILE",
  "NAMESPACE",
  "NODE_NAME",
  "PODS_CIDR",
  "POD_IP",
  "PUSHGATEWAY_JOB",
  "SERVER_CLUSTER_NAME",
  "WEBHOOK_PORT",
  "WEBHOOK_URL",
];

describe("variables of other programs", () => {
  for (const name of OTHERS) {
    it(`${name} is neither refused nor warned of`, () => {
      assert.deepEqual(findUnknown([name]), []);
      assert.deepEqual(findMisspelt({ [name]: "x" }), []);
      readConfiguration({ KUBERNETES_NAMESPACE: "own", [name]: "x" });
    });
  }
});

const MISSPELT: readonly [name: string, nearest: string][] = [
  ["LEASE_DURATON", "LEASE_DURATION"],
  ["LOG_LEVELS", "LOG_LEVEL"],
  ["KUBERNETES_API_URI", "KUBERNETES_API_URL"],
  ["KUBERNETES_CLUSTER_DOMIAN", "KUBERNETES_CLUSTER_DOMAIN"],
  ["WEBHOOK_AUDIENCES", "WEBHOOK_AUDIENCE"],
];

describe("a name that differs from one of ours by one or two letters", () => {
  for (const [name, nearest] of MISSPELT) {
    it(`${name} is not refused, but warned of`, () => {
      assert.deepEqual(findMisspelt({ [name]: "x" }), [{ name, nearest }]);
      readConfiguration({ KUBERNETES_NAMESPACE: "own", [name]: "x" });
    });
  }

  it("is passed over if it is empty, a link to a Service, refused, or known", () => {
    const link = { SERVER_POD_SERVICE_HOST: "10.0.0.1", SERVER_POD_PORT: "tcp://10.0.0.1:1", SERVER_PORTS: "" };
    assert.deepEqual(findMisspelt({ ...link, SERVER_TLS_PORTS: "1", LOG_LEVEL: "info", TLS_PORT: "1" }), []);
  });
});

describe("a variable that has no effect any more", () => {
  const CASES: readonly [text: string | undefined, warnings: number][] = [
    ["5s", 1],
    ["", 0],
    [undefined, 0],
  ];
  for (const [text, warnings] of CASES) {
    it(`is warned of by its name if it is ${JSON.stringify(text)}: ${warnings}`, () => {
      const lines: string[] = [];
      const log = createLog({ level: "info", write: (line) => void lines.push(line), now: () => new Date(0) });
      warnOfVariables({ ZPDB_POD_READY_ANNOTATION_PATCH_TIMEOUT: text }, log);
      assert.equal(lines.filter((line) => line.includes("ZPDB_POD_READY_ANNOTATION_PATCH_TIMEOUT")).length, warnings);
      assert.equal(lines.length, warnings);
    });
  }
});
