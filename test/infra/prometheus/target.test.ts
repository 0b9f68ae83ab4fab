import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isHostAllowed, readQueryTarget } from "../../../infra/prometheus/target.ts";

const NO_HOST = "has no valid host";
const CASES: readonly (readonly [text: string, target: string])[] = [
  ["http://prom:9090", "http://prom:9090/api/v1/query"],
  ["prom:9000/xx", "http://prom:9000/xx/api/v1/query"],
  ["10.0.0.1:9090", "http://10.0.0.1:9090/api/v1/query"],
  ["[::1]:9090", "http://[::1]:9090/api/v1/query"],
  ["https://prom/select/0/prometheus/", "https://prom/select/0/prometheus/api/v1/query"],
  ["HTTPS://Prom", "https://prom/api/v1/query"],
  ["http://prom/x?tenant=a#b", "http://prom/x/api/v1/query?tenant=a"],
  ["prom?query=up&dedup=true", "http://prom/api/v1/query?dedup=true"],
  ["ftp://prom", "has another scheme than http and https"],
  ["file:///etc/passwd", "has another scheme than http and https"],
  ["http://", NO_HOST],
  ["http://:9090", NO_HOST],
  ["http:///x", NO_HOST],
  ["http://user@/x", NO_HOST],
  ["", NO_HOST],
  ["/x", NO_HOST],
  ["//prom", NO_HOST],
  ["http://prom:port", NO_HOST],
  ["http://\\prom", "has a space, a backslash or a control character"],
  ["http://prom\n/x", "has a space, a backslash or a control character"],
  ["http://prom /x", "has a space, a backslash or a control character"],
];

describe("the target of a query", () => {
  for (const [text, target] of CASES)
    it(`reads ${JSON.stringify(text)}`, () => {
      const { url, problem } = readQueryTarget(text);
      assert.equal(url?.href ?? problem, target);
    });

  for (const [url, allowed, expected] of [
    ["http://prom", [], true],
    ["http://prom", ["prom"], true],
    ["http://PROM.:9090", ["prom"], true],
    ["http://prom:9090", ["prom:9090"], true],
    ["http://prom", ["prom:80"], true],
    ["https://prom", ["prom:443"], true],
    ["https://prom", ["prom:80"], false],
    ["http://prom:9091", ["prom:9090"], false],
    ["http://prom.evil", ["prom"], false],
    ["http://169.254.169.254", ["prom"], false],
    ["http://prom@169.254.169.254", ["prom"], false],
    ["http://[0:0::1]:9090", ["[::1]"], true],
    ["http://[::ffff:169.254.169.254]", ["[::1]"], false],
    ["http://2852039166", ["169.254.169.254"], true],
    ["http://prom%2eevil", ["prom"], false],
    ["http://\u24c5rom", ["prom"], true],
  ] as const)
    it(`${expected ? "allows" : "refuses"} ${url} where ${allowed.join() || "nothing"} is listed`, () =>
      assert.equal(isHostAllowed(new URL(url), allowed), expected));
});
