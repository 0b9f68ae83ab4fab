import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readProfileRequest } from "../../../infra/profiles/profile-request.ts";

const ask = (url: string, more: { method?: string; host?: string | undefined } = {}) =>
  readProfileRequest({ method: "GET", url, host: "localhost:6060", ...more });

describe("a request for a profile", () => {
  for (const [url, kind, seconds] of [
    ["/debug/pprof/profile", "cpu", 30],
    ["/debug/pprof/profile?seconds=1", "cpu", 1],
    ["/debug/pprof/heap?seconds=120", "heap", 120],
  ] as const)
    it(`${url} asks for ${seconds} s`, () => assert.partialDeepStrictEqual(ask(url), { kind, seconds }));
  for (const host of ["localhost", "127.0.0.1:6060", "[::1]:1", "LOCALHOST:6060"])
    it(`is served for ${host}`, () => assert.ok("kind" in ask("/debug/pprof/profile", { host })));

  for (const [what, asked, status, message] of [
    ["0 s", ask("/debug/pprof/profile?seconds=0"), 400, /^seconds is "0", allowed is one whole number from 1 to 120$/],
    ["121 s", ask("/debug/pprof/profile?seconds=121"), 400, /seconds is "121"/],
    ["no number", ask("/debug/pprof/heap?seconds=1e1"), 400, /seconds is "1e1"/],
    ["nothing", ask("/debug/pprof/heap?seconds="), 400, /seconds is ""/],
    ["two numbers", ask("/debug/pprof/heap?seconds=1&seconds=2"), 400, /seconds is "1,2"/],
    ["another parameter", ask("/debug/pprof/profile?debug=1"), 400, /^"debug" is not known/],
    ["another path", ask("/debug/pprof/goroutine"), 404, /there are \/debug\/pprof\/profile and/],
    ["a name of every object", ask("/constructor"), 404, /there are/],
    ["another method", ask("/debug/pprof/profile", { method: "POST" }), 405, /GET/],
    ["another host", ask("/debug/pprof/profile", { host: "evil.example" }), 403, /port-forward/],
    [
      "a host that only begins so",
      ask("/debug/pprof/profile", { host: "localhost.evil.example" }),
      403,
      /port-forward/,
    ],
    ["no host", ask("/debug/pprof/profile", { host: undefined }), 403, /port-forward/],
  ] as const)
    it(`with ${what} is refused`, () => {
      assert.ok("status" in asked);
      assert.equal(asked.status, status);
      assert.match(asked.message, message);
    });
});
