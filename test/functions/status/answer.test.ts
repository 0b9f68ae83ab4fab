import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, request } from "node:http";
import { test, type TestContext } from "node:test";
import { createAnswer } from "../../../functions/status/answer.ts";
import { type PageRecords, UNREAD } from "../../../functions/status/view/records.ts";
import { listen } from "../../loopback.ts";
import { keepingLog } from "../stage.ts";
import { group, records } from "./samples.ts";

interface Answered {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

interface Request {
  readonly path?: string;
  readonly method?: string;
  readonly host?: string;
}

/** Serves the page; `ask` sends one request. */
async function serve(t: TestContext, read: () => Promise<PageRecords>, hosts: readonly string[] = []) {
  const { log, entries } = keepingLog();
  const answer = createAnswer({ read, hosts, log });
  const server = createServer((request, response) => void answer(request, response));
  const port = await listen(server);
  t.after(() => (server.closeAllConnections(), server.close()));
  const ask = ({ path = "/", method = "GET", host = `localhost:${port}` }: Request = {}): Promise<Answered> =>
    new Promise((resolve, reject) => {
      const sent = request({ port, path, method, headers: { host } }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
      });
      sent.on("error", reject).end();
    });
  return { ask, entries };
}

const ROWS: readonly (readonly [what: string, ask: Request, status: number, text: RegExp])[] = [
  ["the page", {}, 200, /<title>1 Ready – Zonewise<\/title>/],
  ["the page by an address of this machine", { host: "127.0.0.1:8001" }, 200, /<main>/],
  ["the page by its address in IPv6", { host: "[::1]:8001" }, 200, /<main>/],
  ["the page by a host that is configured", { host: "Status.example.com:8443" }, 200, /<main>/],
  ["a group alone", { path: "/?namespace=default&group=store" }, 200, /default\/store/],
  [
    "a group that does not exist",
    { path: "/?namespace=default&group=%3Cb%3E" },
    404,
    /No rollout group default\/&lt;b>/,
  ],
  ["the headers alone", { method: "HEAD" }, 200, /^$/],
  ["another host, whose name may lead here", { host: "evil.example.com" }, 421, /STATUS_PAGE_HOSTS/],
  ["a host that begins like one of this machine", { host: "localhost.evil.example.com" }, 421, /unknown host/],
  ["a write", { method: "POST" }, 405, /GET the page/],
  ["another path", { path: "/metrics" }, 404, /the page is at \//],
  ["a path that is none", { path: "//" }, 404, /the page is at \//],
];

for (const [what, asked, status, text] of ROWS)
  test(`${what} is answered with ${status}`, async (t) => {
    const read = async () => records({ groups: [group("store", { phase: "Ready" })] });
    const { ask } = await serve(t, read, ["status.example.com"]);
    const answered = await ask(asked);
    assert.equal(answered.status, status, answered.text);
    assert.match(answered.text, text);
    assert.match(String(answered.headers["content-security-policy"]), /^default-src 'none'; /);
    assert.equal(answered.headers["cache-control"], "no-store");
  });

test("a group that could not be read is not answered as one that does not exist", async (t) => {
  for (const traits of [{ groups: UNREAD }, { groups: [group("other")], unread: ["default"] }] as const) {
    const { ask } = await serve(t, async () => records(traits));
    const { status, text } = await ask({ path: "/?namespace=default&group=store" });
    assert.equal(status, 200);
    assert.match(text, /<title>Rollout groups could not be read – Zonewise<\/title>/);
    assert.match(text, /Could not be read\./);
  }
});

test("a browser runs the page's own script and style, and nothing else", async (t) => {
  const { ask } = await serve(t, async () => records());
  const { headers, text } = await ask();
  const policy = String(headers["content-security-policy"]);
  for (const [tag, directive] of [
    ["script", "script-src"],
    ["style", "style-src"],
  ]) {
    const [, content = ""] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(text) ?? [];
    const hash = createHash("sha256").update(content).digest("base64");
    assert.ok(policy.includes(`${directive} 'sha256-${hash}'`), policy);
  }
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  assert.doesNotMatch(text, /\s(?:style|on\w+)=|(?:src|href)="(?!\?|data:,)/);
  assert.deepEqual(
    [headers["x-frame-options"], headers["x-content-type-options"], headers["referrer-policy"]],
    ["DENY", "nosniff", "no-referrer"],
  );
});

test("a fault is logged, and its text not shown", async (t) => {
  const { ask, entries } = await serve(t, () => Promise.reject(new Error("secret")));
  const { status, text } = await ask();
  assert.deepEqual([status, text], [500, "internal error\n"]);
  assert.match(JSON.stringify(entries), /could not be rendered.*secret/);
});
