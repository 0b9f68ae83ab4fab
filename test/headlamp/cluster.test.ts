/** The port through Headlamp: what it asks, and what an answer means. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type HostParams, openPort } from "../../headlamp/src/cluster.ts";
import { explainError } from "../../cli/decide/explain-error.ts";
import { RolloutError, type ErrorCode } from "../../infra/errors.ts";
import { collect } from "../../infra/kubernetes/collect.ts";
import { rolloutGroups } from "../../infra/kubernetes/custom-resources.ts";
import { leases, pods, statefulSetNames } from "../../infra/kubernetes/resources.ts";

type Reply = object | string | Error;
const failure = (status: number | undefined, message: string): Error => Object.assign(new Error(message), { status });

/** A port whose answers are by path; what it asks is noted. */
function open(replies: Readonly<Record<string, Reply>>) {
  const asked: string[] = [];
  const params: HostParams[] = [];
  const dates: (string | undefined)[] = [];
  const request = async (path: string, own: HostParams): Promise<unknown> => {
    asked.push(path);
    params.push(own);
    const reply = replies[path] ?? failure(404, "Not Found - 404 page not found\n");
    if (reply instanceof Error) throw reply;
    const text = typeof reply === "string" ? reply : JSON.stringify(reply);
    return new Response(text, { headers: { date: "Thu, 26 Nov 2026 12:00:00 GMT" } });
  };
  const clock = { now: () => 0, monotonic: () => 0 };
  const cluster = openPort({ request, cluster: "one", clock, onDate: (date) => void dates.push(date) });
  return { cluster, asked, params, dates };
}

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/z/leases/r";
const GROUPS = "/apis/zonewise.dev/v1/rolloutgroups?limit=500";
const lease = { namespace: "z", name: "r" };

describe("the port through Headlamp", () => {
  it("asks page by page, with selectors, in the user's own name and for one cluster", async () => {
    const first = "/api/v1/namespaces/z/pods?labelSelector=name%3Da&limit=500";
    const { cluster, asked, params, dates } = open({
      [first]: { metadata: { continue: "t" }, items: [{ metadata: { name: "a-0" } }] },
      [`${first}&continue=t`]: { metadata: {}, items: [{ metadata: { name: "a-1" } }] },
    });
    const found = await collect(cluster.list(pods, { namespace: "z", labelSelector: "name=a" }, { deadlineMs: 4000 }));
    assert.deepEqual(
      found.map(({ metadata }) => metadata?.name),
      ["a-0", "a-1"],
    );
    assert.deepEqual(asked, [first, `${first}&continue=t`]);
    assert.deepEqual(params[0], {
      cluster: "one",
      timeout: 4000,
      isJSON: false,
      autoLogoutOnAuthError: false,
      headers: { Accept: "application/json" },
    });
    assert.equal(dates[0], "Thu, 26 Nov 2026 12:00:00 GMT");
  });
  it("asks for metadata alone where no more is read", async () => {
    const { cluster, params } = open({ "/apis/apps/v1/statefulsets?limit=500": { items: null } });
    assert.deepEqual(await collect(cluster.list(statefulSetNames, {})), []);
    assert.match(params[0]?.headers["Accept"] ?? "", /^application\/json;as=PartialObjectMetadataList;/);
  });
  it("gets an object once for one view, and again after an error", async () => {
    const known = open({ [LEASE]: { metadata: { name: "r" } } });
    await Promise.all([known.cluster.get(leases, lease), known.cluster.get(leases, lease)]);
    assert.deepEqual(known.asked, [LEASE]);
    const failing = open({ [LEASE]: failure(503, "Service Unavailable - later") });
    for (const _ of [1, 2]) await assert.rejects(failing.cluster.get(leases, lease));
    assert.equal(failing.asked.length, 2);
  });
  it("shows characters that are not seen by their codes", async () => {
    const { cluster } = open({ [LEASE]: { metadata: { name: "r", annotations: { note: "a\u202Eb" } } } });
    assert.equal((await cluster.get(leases, lease)).metadata?.annotations?.["note"], "a\\u202eb");
  });
  it("writes nothing: what writes is refused, and nothing is asked", async () => {
    const { cluster, asked } = open({});
    const { list: _, get: __, ...others } = cluster;
    for (const verb of Object.values(others) as readonly unknown[])
      await assert.rejects((verb as () => Promise<unknown>)(), {
        code: "Invalid",
        message: "the plugin only lists objects and gets them",
      });
    assert.deepEqual([Object.keys(others).length, asked], [7, []]);
  });

  const RIGHT =
    'leases.coordination.k8s.io "r" is forbidden: User "ann" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "z"';
  const CASES: readonly (readonly [what: string, reply: Reply, code: ErrorCode, message: RegExp])[] = [
    ["a right that is missing", failure(403, `Forbidden - ${RIGHT}`), "Forbidden", /cannot get resource "leases"/],
    ["the same over HTTP/2", failure(403, ` - ${RIGHT}`), "Forbidden", /cannot get resource "leases"/],
    [
      "credentials that have expired",
      failure(401, "Unauthorized - Unauthorized"),
      "Unauthorized",
      /Unauthorized \(401\)/,
    ],
    ["an object that is missing", failure(404, 'Not Found - leases "r" not found'), "NotFound", /"r" not found/],
    ["no time left", failure(408, "Request timed-out"), "Timeout", /timed-out/],
    ["no answer", failure(502, "Unreachable"), "Unreachable", /Unreachable/],
    ["a gateway's fault", failure(502, "Bad Gateway - no upstream"), "ServerError", /no upstream/],
    ["a fault of the browser's", failure(undefined, "Failed to fetch"), "Unreachable", /Failed to fetch/],
    ["a page of a login", "<html>", "ServerError", /the answer is no JSON/],
  ];
  for (const [what, reply, code, message] of CASES)
    it(`understands ${what}`, async () => {
      const error: unknown = await open({ [LEASE]: reply })
        .cluster.get(leases, lease)
        .catch((thrown: unknown) => thrown);
      assert.ok(error instanceof RolloutError);
      assert.equal(error.code, code);
      assert.match(error.message, message);
    });
  it("says which right is missing as the commands do", async () => {
    const { cluster } = open({ [LEASE]: failure(403, `Forbidden - ${RIGHT}`) });
    const error: unknown = await cluster.get(leases, lease).catch((thrown: unknown) => thrown);
    assert.equal(explainError(error).message, "ann may not get leases.coordination.k8s.io in namespace z");
  });
  it("tells a cluster without the kind from one that Headlamp does not know: both answer with the same page", async () => {
    const without = open({ "/version": { major: "1" } });
    await assert.rejects(collect(without.cluster.list(rolloutGroups, {})), { code: "NotFound" });
    const unknown = open({});
    await assert.rejects(collect(unknown.cluster.list(rolloutGroups, {})), {
      code: "Unreachable",
      message: /Headlamp knows no cluster one$/,
    });
    assert.deepEqual(unknown.asked, [GROUPS, "/version"]);
    const silent = open({ "/version": failure(502, "Unreachable") });
    await assert.rejects(collect(silent.cluster.list(rolloutGroups, {})), { code: "Unreachable" });
  });
});
