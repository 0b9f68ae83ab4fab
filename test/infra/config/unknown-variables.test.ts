/** Unknown variables that are not refused: they belong to other programs. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findUnknown, readConfiguration } from "../../../infra/config/config.ts";

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
    it(`${name} is not refused`, () => {
      assert.deepEqual(findUnknown([name]), []);
      readConfiguration({ KUBERNETES_NAMESPACE: "own", [name]: "x" });
    });
  }
});
