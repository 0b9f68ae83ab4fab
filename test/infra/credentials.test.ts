import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { credentialsOf, readCredentials, redactUrl, withoutCredentials } from "../../infra/credentials.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const secret = (data: Record<string, string>) =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)]));

describe("the credentials of a query", () => {
  for (const [name, data, authorization] of [
    ["a token", { token: "abc" }, "Bearer abc"],
    ["a token with a line break at its end", { token: "abc\n" }, "Bearer abc"],
    ["a username and a password", { username: "u", password: "p:\u00e9" }, `Basic ${base64("u:p:\u00e9")}`],
    ["other keys beside a token", { token: "abc", "ca.crt": "x" }, "Bearer abc"],
  ] as const)
    it(`are ${name} of a Secret`, () => {
      const read = readCredentials(secret(data));
      assert.equal(read.problem === undefined && read.authorization, authorization);
    });

  for (const [name, data, problem] of [
    ["no key", {}, "has neither the key token nor the keys username and password"],
    ["no password", { username: "u" }, "has no password"],
    ["no username", { password: "p" }, "has no username"],
    [
      "two kinds of credentials",
      { token: "t", username: "u", password: "p" },
      "has both a token and a username or password",
    ],
    [
      "a token with a line break within",
      { token: "a\nb" },
      "has a token with characters that no HTTP header can carry",
    ],
  ] as const)
    it(`are refused with ${name}, without showing them`, () =>
      assert.deepEqual(readCredentials(secret(data)), { problem }));

  it("are the user and password of a URL", () => {
    assert.deepEqual(credentialsOf(new URL("http://u:p%40@prom")), {
      authorization: `Basic ${base64("u:p@")}`,
      secrets: ["p@", base64("u:p@")],
    });
    assert.deepEqual(credentialsOf(new URL("http://prom")), { secrets: [] });
  });

  it("are not in a URL that is asked, nor in one that is shown", () => {
    const url = new URL("https://u:p@prom:9090/x?token=t#f");
    assert.equal(withoutCredentials(url).href, "https://prom:9090/x?token=t#f");
    assert.equal(redactUrl(url), "https://prom:9090/x");
    assert.equal(url.username, "u");
  });
});
