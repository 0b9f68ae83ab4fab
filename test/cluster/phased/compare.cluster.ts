/**
 * On a real control plane: a gate that compares the updated pods with the others, a bypass of it for one zone, and its
 * end for the next one.
 */
import assert from "node:assert/strict";
import { formatTimestamp } from "../../../infra/timestamp.ts";
import { startPrometheus } from "../../prometheus/scripted.ts";
import { define } from "../stage/definitions.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import type { ZoneOptions } from "../stage/zones.ts";

const ZONES: readonly ZoneOptions[] = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name }));

interface Gate {
  readonly status?: {
    readonly settledTime?: string;
    readonly bypasses?: readonly { readonly zone: string; readonly accepted: boolean }[];
    readonly stages: readonly {
      readonly zone: string;
      readonly state: string;
      readonly checks?: readonly { readonly sample?: string }[];
    }[];
  };
}

/** One series with this value. */
const number = (value: string) => ({
  body: { status: "success", data: { resultType: "vector", result: [{ metric: {}, value: [1, value] }] } },
});

scenario(
  "a gate compares the updated pods with the others, and a bypass of one zone passes it for that zone alone",
  async (stage) => {
    const { call, create, start, setImage, done, timeline, namespace } = stage;
    await define(stage.admin, "rolloutgates");
    const path = `/apis/zonewise.dev/v1/namespaces/${namespace}/rolloutgates`;
    await using prometheus = await startPrometheus();
    let candidate = "0.2";
    prometheus.answer = ({ expr }) => number(expr.startsWith("candidate") ? candidate : "0.1");
    const check = {
      name: "errors",
      query: { expr: `candidate{pod=~"$(candidate_pods)", namespace="$(namespace)"}`, url: prometheus.url },
      successWhen: "WithinBaseline",
      baseline: { expr: `baseline{pod=~"$(other_pods)"}`, maxRatio: "1.5" },
      initialDelaySeconds: 0,
      periodSeconds: 1,
      successThreshold: 2,
    };
    await call("POST", path, {
      apiVersion: "zonewise.dev/v1",
      kind: "RolloutGate",
      metadata: { name: "gate" },
      spec: { group: "cache", checks: [check] },
    });
    const read = async () => (await call<Gate>("GET", `${path}/gate`)).status;
    const stageOf = async (zone: string) => (await read())?.stages.find((one) => one.zone === zone);
    const deletedOf = (name: string): number => deletions(timeline.entries).filter(({ zone }) => zone === name).length;
    const annotate = (zone: string, until: string) =>
      call("PATCH", `/apis/apps/v1/namespaces/${namespace}/statefulsets/${zone}`, {
        metadata: {
          annotations: { "zonewise.dev/bypass-gates-until": until, "zonewise.dev/bypass-gates-reason": "known alert" },
        },
      });
    await create(ZONES);
    const first = start();
    await until("the gate has settled", async () => (await read())?.settledTime !== undefined);
    await setImage("app:2", ZONES);
    const samples = async (zone: string): Promise<string> => (await stageOf(zone))?.checks?.[0]?.sample ?? "";
    await until("zone-b is compared", async () => (await samples("zone-b")) !== "");
    assert.equal(await samples("zone-b"), "0.2 against a baseline of 0.1; at most 1.5 times is allowed");
    const asked = prometheus.seen.map(({ expr }) => expr);
    assert.ok(asked.includes(`candidate{pod=~"(?:zone-a-[0-9]+)", namespace="${namespace}"}`), asked[0]);
    assert.ok(asked.includes(`baseline{pod=~"(?:zone-b-[0-9]+|zone-c-[0-9]+)"}`));
    assert.deepEqual([deletedOf("zone-a"), deletedOf("zone-b")], [3, 0]);

    await annotate("zone-c", formatTimestamp(Date.now() + 48 * 3_600_000));
    await until(
      "the bypass of zone-c is refused",
      async () => (await read())?.bypasses?.some(({ zone, accepted }) => zone === "zone-c" && !accepted) === true,
    );
    await annotate("zone-b", formatTimestamp(Date.now() + 600_000));
    await until("zone-c is compared", async () => (await samples("zone-c")) !== "");
    assert.deepEqual([(await stageOf("zone-b"))?.state, (await stageOf("zone-c"))?.state], ["Bypassed", "Waiting"]);
    assert.deepEqual([deletedOf("zone-b"), deletedOf("zone-c")], [3, 0]);
    candidate = "0.1";
    await done("app:2", ZONES);
    await first.end();
    assert.equal((await stageOf("zone-c"))?.state, "Passed");
    const { items } = await call<{ items: { reason: string; involvedObject: { name: string } }[] }>(
      "GET",
      `/api/v1/namespaces/${namespace}/events`,
    );
    const told = items.flatMap(({ reason, involvedObject }) =>
      /Bypass/.test(reason) ? [`${reason} ${involvedObject.name}`] : [],
    );
    assert.deepEqual(told.toSorted(), ["BypassRefused zone-c", "GatesBypassed gate", "GatesBypassed zone-b"]);
    assertNoViolations(timeline.entries);
  },
);
