/** All failures of a call, with their codes; calls that are repeated, and calls that never are. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import type { ErrorCode, RolloutError } from "../../infra/errors.ts";
import { pods } from "../../infra/kubernetes/resources.ts";
import { connectionTo, failure, json, type Reply, reset, silence, stage } from "./stage.ts";

const ref = { namespace: "cache", name: "zone-a-0" };
const GET = (cluster: Cluster) => cluster.get(pods, ref);
const CREATE = (cluster: Cluster) => cluster.create(pods, { namespace: "cache", body: {} });
const DELETE = (cluster: Cluster) => cluster.remove(pods, { ...ref, preconditions: { uid: "u" } });
const PATCH = (cluster: Cluster) => cluster.patch(pods, { ...ref, type: "merge", body: {} });
const PUT = (cluster: Cluster) => cluster.replace(pods, { ...ref, body: {} });

async function errorOf(work: Promise<unknown>): Promise<RolloutError> {
  return await work.then(
    () => assert.fail("it did not fail"),
    (error: RolloutError) => error,
  );
}

const FAILED = 'Internal error occurred: failed calling webhook "a.example.com":';
const NOT_CALLED = `${FAILED} failed to call webhook: Post "https://hook.ns.svc:443/?timeout=1s": context deadline exceeded`;
const MISTAKEN = `${FAILED} received invalid webhook response: expected response.uid="1", got "2"`;

const ANSWERS: readonly [name: string, Reply, (cluster: Cluster) => Promise<unknown>, ErrorCode][] = [
  ["400", failure(400, "BadRequest", "no"), GET, "Invalid"],
  ["401", failure(401, "Unauthorized", "no"), GET, "Unauthorized"],
  ["403 of RBAC", failure(403, "Forbidden", "no"), GET, "Forbidden"],
  ["404", failure(404, "NotFound", "no"), DELETE, "NotFound"],
  ["405", failure(405, "MethodNotAllowed", "no"), PUT, "Invalid"],
  ["409 on create", failure(409, "AlreadyExists", "no"), CREATE, "AlreadyExists"],
  // A quota that changed meanwhile: https://github.com/kubernetes/kubernetes/issues/67761
  ["409 on create, of a quota", failure(409, "Conflict", "no"), CREATE, "Conflict"],
  ["409 on patch", failure(409, "Conflict", "no"), PATCH, "Conflict"],
  ["409 on delete", failure(409, "Conflict", "no"), DELETE, "Conflict"],
  ["410", failure(410, "Expired", "no"), GET, "Expired"],
  ["413", failure(413, "RequestEntityTooLarge", "no"), PATCH, "Invalid"],
  ["422", failure(422, "Invalid", "no"), CREATE, "Invalid"],
  ["429 that names no time", failure(429, "TooManyRequests", "no"), GET, "Throttled"],
  ["500", failure(500, "InternalError", "no"), GET, "ServerError"],
  ["500 of a webhook without an answer", failure(500, "InternalError", NOT_CALLED), PATCH, "WebhookFailed"],
  [
    "500 of a webhook with an answer of another review",
    failure(500, "InternalError", MISTAKEN),
    DELETE,
    "WebhookFailed",
  ],
  [
    "500 whose message only mentions a webhook",
    failure(500, "InternalError", `etcd: ${NOT_CALLED}`),
    PATCH,
    "ServerError",
  ],
  ["500 of another reason", failure(500, "ServerTimeout", NOT_CALLED), PATCH, "ServerError"],
  ["500 that is no Status", (response) => response.writeHead(500).end(NOT_CALLED), PATCH, "ServerError"],
  ["504 while a webhook was called", failure(504, "Timeout", NOT_CALLED), PATCH, "Timeout"],
  ["503", failure(503, "ServiceUnavailable", "no"), GET, "ServerError"],
  ["504, the server's own deadline", failure(504, "Timeout", "no"), PATCH, "Timeout"],
  ["a redirect", json({}, 302), GET, "ServerError"],
];

describe("an answer that says no", () => {
  for (const [name, reply, call, code] of ANSWERS) {
    it(`${name} is ${code}, and the request is sent once`, async () => {
      const { cluster, seen } = await stage([reply]);
      assert.equal((await errorOf(call(cluster))).code, code);
      assert.equal(seen.length, 1);
    });
  }

  it("is reported with the call, the server's message, and its Status as the cause", async () => {
    const { cluster } = await stage([failure(409, "Conflict", "the object has been modified")]);
    const error = await errorOf(cluster.patch(pods, { ...ref, subresource: "status", type: "merge", body: {} }));
    assert.equal(error.message, "patch pods/status cache/zone-a-0: the object has been modified (409 Conflict)");
    assert.equal((error.cause as { reason?: string }).reason, "Conflict");
    assert.equal(error.status, 409);
  });

  it("is explained by its Status also where that has no kind, as at the server's own deadline", async () => {
    const { cluster } = await stage([
      json({ metadata: {}, status: "Failure", message: "too late", reason: "Timeout", code: 504 }, 504),
    ]);
    assert.equal((await errorOf(GET(cluster))).message, "get pods cache/zone-a-0: too late (504 Timeout)");
  });

  it("is explained by its text when it is no Status, as a proxy's", async () => {
    const { cluster } = await stage([(response) => response.writeHead(502).end("<h1>Bad gateway</h1>\n")]);
    const error = await errorOf(GET(cluster));
    assert.deepEqual(
      [error.code, error.message],
      ["ServerError", "get pods cache/zone-a-0: <h1>Bad gateway</h1> (502)"],
    );
  });
});

const cutShort: Reply = (response) => {
  response.writeHead(200, { "content-length": "100" }).write('{"metadata":');
  response.socket?.end();
};

const BREAKS: readonly [name: string, Reply, ErrorCode][] = [
  ["a connection that breaks before the answer", reset, "Unreachable"],
  ["an answer cut short", cutShort, "Unreachable"],
  ["an answer that is no JSON", (response) => response.end('{"metadata":'), "ServerError"],
];

describe("no answer", () => {
  for (const [name, reply, code] of BREAKS) {
    for (const [verb, call] of Object.entries({ GET, PATCH, DELETE, CREATE, PUT })) {
      it(`${name} is ${code}; a ${verb} is not repeated`, async () => {
        const { cluster, seen } = await stage([reply]);
        assert.equal((await errorOf(call(cluster))).code, code);
        assert.equal(seen.length, 1);
      });
    }
  }

  it("of a host that refuses is Unreachable", async () => {
    const connection = connectionTo(new URL("https://127.0.0.1:1"));
    const error = await errorOf(GET(connectCluster(connection, { timeoutMs: 60_000 })));
    assert.equal(error.code, "Unreachable");
    assert.match(error.message, /^get pods cache\/zone-a-0: connect ECONNREFUSED/);
  });

  it("of a server whose certificate we do not trust is Unreachable", async () => {
    const { server } = await stage([json({})]);
    const connection = { ...connectionTo(server), authorize: () => Promise.resolve({}) };
    assert.equal((await errorOf(GET(connectCluster(connection, { timeoutMs: 60_000 })))).code, "Unreachable");
  });

  it("within the deadline is Timeout, for the head and for the rest of the answer", async () => {
    const half: Reply = (response) => void response.writeHead(200).write("{");
    for (const reply of [silence, half]) {
      const { cluster } = await stage([reply]);
      const error = await errorOf(cluster.get(pods, ref, { deadlineMs: 100 }));
      assert.deepEqual([error.code, error.message], ["Timeout", "get pods cache/zone-a-0: no answer within 100 ms"]);
    }
  });

  it("from a credential plugin that hangs is Timeout too", async () => {
    const { server } = await stage([json({})]);
    const hanging = { ...connectionTo(server), authorize: () => new Promise<never>(() => undefined) };
    assert.equal((await errorOf(GET(connectCluster(hanging, { timeoutMs: 20 })))).code, "Timeout");
  });

  it("when the caller gives up is Cancelled, with the caller's reason", async () => {
    const stop = new AbortController();
    const { cluster } = await stage([() => stop.abort("enough")]);
    const error = await errorOf(cluster.get(pods, ref, { signal: stop.signal }));
    assert.deepEqual([error.code, error.cause], ["Cancelled", "enough"]);
  });

  it("when the caller has given up already: nothing is sent", async () => {
    const { cluster, seen } = await stage([json({})]);
    assert.equal((await errorOf(cluster.get(pods, ref, { signal: AbortSignal.abort() }))).code, "Cancelled");
    assert.equal(seen.length, 0);
  });
});

describe("a connection that the server closed while it was idle", () => {
  const closing = [json({ metadata: { resourceVersion: "1" } }), reset, json({ metadata: { resourceVersion: "2" } })];

  it("is noticed by a read, which is repeated on a new one", async () => {
    const { cluster, seen } = await stage(closing);
    await GET(cluster);
    assert.equal((await GET(cluster)).metadata?.resourceVersion, "2");
    assert.equal(seen.length, 3);
  });

  it("fails a write, which may have taken effect", async () => {
    const { cluster, seen } = await stage(closing);
    await GET(cluster);
    assert.equal((await errorOf(DELETE(cluster))).code, "Unreachable");
    assert.equal(seen.length, 2);
  });
});

/** As long as the server says, and up to a quarter longer. */
function assertAbout(ms: number | undefined, atLeast: number): void {
  assert.ok(ms !== undefined && ms >= atLeast && ms <= 1.25 * atLeast, `${ms} ms, not ${atLeast}`);
}

describe("throttling by the server", () => {
  const busy = (seconds: string) => failure(429, "TooManyRequests", "too many requests", { "retry-after": seconds });

  for (const [verb, call] of Object.entries({ GET, PATCH, DELETE })) {
    it(`is waited out as long as the server says; the ${verb} goes again, as the first was not executed`, async () => {
      const { cluster, seen, waits } = await stage([busy("2"), busy("1"), json({ metadata: {} })]);
      await call(cluster);
      assert.equal(seen.length, 3);
      for (const [i, atLeast] of [2000, 1000].entries()) assertAbout(waits[i], atLeast);
      assert.equal(waits.length, 2);
    });
  }

  it("makes no loop of calls if the server says 0: a second lies between them", async () => {
    const { cluster, seen, waits } = await stage([busy("0"), busy("0"), json({ metadata: {} })]);
    await GET(cluster);
    for (const wait of waits) assertAbout(wait, 1000);
    assert.deepEqual([seen.length, waits.length], [3, 2]);
  });

  it("beyond the deadline is Throttled at once, with the time to wait", async () => {
    const { cluster, seen, waits } = await stage([busy("30")]);
    const error = await errorOf(GET(cluster));
    assertAbout(error.retryAfterMs, 30_000);
    assert.deepEqual([error.code, seen.length, waits], ["Throttled", 1, []]);
  });
});

describe("throttling by ourselves", () => {
  it("is Throttled when a token would come too late; nothing is sent, and it is counted", async () => {
    const limited: string[] = [];
    const observer = { answered: () => undefined, rateLimited: (group: string) => void limited.push(group) };
    const { cluster, seen } = await stage([json({})], { rate: { qps: 0.1, burst: 1 }, observer });
    await GET(cluster);
    const error = await errorOf(GET(cluster));
    assert.equal(error.code, "Throttled");
    assert.match(
      error.message,
      /^get pods cache\/zone-a-0: client-side rate limiter for Kubernetes API group "core": /,
    );
    assert.ok(error.cause instanceof Error);
    assert.deepEqual([seen.length, limited], [1, ["core"]]);
  });
});
