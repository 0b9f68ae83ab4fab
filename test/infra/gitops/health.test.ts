/** What Argo CD and Flux say of groups and zones by the rules that are shipped for them. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { CelScalar, celEnv, mapType, parse, plan } from "@bufbuild/cel";
import { LuaFactory, type LuaEngine } from "wasmoon";
import { decideStatus } from "../../../reconciler/group-status/decide-status.ts";
import type { GroupFacts } from "../../../reconciler/group-status/facts.ts";
import { hold } from "../../../reconciler/model/decision.ts";
import { PREVIOUS, statefulSetObject, type ZoneTraits } from "../../reconciler/builders.ts";
import { facts, OLD } from "../../reconciler/group-status/builders.ts";
import { read } from "../manifests.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

/** A RolloutGroup with the status that the reconciler would write. */
function rolloutGroup(traits: ZoneTraits, more: Partial<GroupFacts> = {}, generation = 1): object {
  const status = decideStatus({
    facts: facts({ traits: [traits], ...more }),
    earlier: {},
    generation: 1,
    deadlineMs: 1000,
    now: START,
    tookMs: 0,
    passes: 1,
  });
  return { apiVersion: "zonewise.dev/v1", kind: "RolloutGroup", metadata: { generation }, spec: {}, status };
}

const held = (reason: "ZonePaused" | "BudgetUnusable" | "ZoneNotReady"): Partial<GroupFacts> => ({
  hold: hold(reason, "said", []),
});
const zone = (traits: ZoneTraits): object => ({
  apiVersion: "apps/v1",
  kind: "StatefulSet",
  ...statefulSetObject(traits),
});
const outsider = (traits: ZoneTraits, spec: object = {}): object => {
  const { metadata, ...set } = statefulSetObject(traits);
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    ...set,
    metadata: { ...metadata, labels: {} },
    spec: { ...set.spec, ...spec },
  };
};
const rolling = (partition = 0): object => ({
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition } },
});

type Health = "Healthy" | "Progressing" | "Degraded" | "Suspended";
/** Flux is asked only about groups and their zones, and knows no Suspended. */
const CASES: readonly (readonly [name: string, object: object, argo: Health, flux?: string])[] = [
  ["a group that is ready", rolloutGroup({}), "Healthy", "Current"],
  ["a group that was ready before its spec changed", rolloutGroup({}, {}, 2), "Progressing", "InProgress"],
  [
    "a group that rolls out",
    rolloutGroup(OLD, { state: "acted", step: { action: "deletePods", zone: "a" } }),
    "Progressing",
    "InProgress",
  ],
  ["a group that waits", rolloutGroup(OLD, held("ZoneNotReady")), "Progressing", "InProgress"],
  ["a group that is paused", rolloutGroup(OLD, held("ZonePaused")), "Suspended", "InProgress"],
  ["a group that has stalled", rolloutGroup(OLD, held("BudgetUnusable")), "Degraded", "Failed"],
  [
    "a group without a status",
    { apiVersion: "zonewise.dev/v1", kind: "RolloutGroup", metadata: { generation: 1 }, spec: {}, status: {} },
    "Progressing",
    "InProgress",
  ],
  ["a zone that is done", zone({}), "Healthy", "Current"],
  ["a zone whose spec is not observed", zone({ generation: 2, observedGeneration: 1 }), "Progressing", "InProgress"],
  ["a zone whose rollout has not begun", zone(OLD), "Progressing", "InProgress"],
  [
    "a zone whose pods are updated, but that is not recorded",
    zone({ currentRevision: PREVIOUS }),
    "Progressing",
    "InProgress",
  ],
  ["a zone that lacks a pod", zone({ statusReady: 2 }), "Progressing", "InProgress"],
  [
    "a zone that is paused with outdated pods",
    zone({ ...OLD, annotations: { "grafana.com/rollout-paused": "true" } }),
    "Suspended",
    "InProgress",
  ],
  ["a StatefulSet in no group, OnDelete and outdated", outsider(OLD), "Healthy"],
  ["a StatefulSet in no group that rolls", outsider(OLD, rolling()), "Progressing"],
  ["a StatefulSet in no group that has rolled", outsider({}, rolling()), "Healthy"],
  ["a StatefulSet in no group behind its partition", outsider(OLD, rolling(1)), "Progressing"],
  ["a StatefulSet in no group at its partition", outsider(OLD, rolling(3)), "Healthy"],
];

describe("the health by Argo CD's Lua", () => {
  const [map] = read("infra/gitops/argocd-cm.yaml");
  const scripts = map?.["data"] as Readonly<Record<string, string>>;
  let lua: LuaEngine;
  before(async () => void (lua = await new LuaFactory().createEngine()));
  after(() => lua.global.close());

  for (const [name, object, expected] of CASES)
    it(`of ${name} is ${expected}`, async () => {
      const { kind } = object as { kind: string };
      const script =
        scripts[`resource.customizations.health.${kind === "StatefulSet" ? "apps" : "zonewise.dev"}_${kind}`];
      // As a table of Lua, which is what Argo CD passes.
      const health = (await lua.doString(`local obj = ${toLua(object)}\n${script}`)) as {
        status: string;
        message: string;
      };
      assert.equal(health.status, expected);
      assert.ok(health.message.length > 0);
    });
});

describe("the health by Flux's CEL", () => {
  const [manifest] = read("infra/gitops/flux-health.yaml");
  const { healthCheckExprs } = manifest?.["spec"] as { healthCheckExprs: Readonly<Record<string, string>>[] };
  const any = mapType(CelScalar.STRING, CelScalar.DYN);
  const env = celEnv({ variables: { metadata: any, spec: any, status: any } });

  /** In Flux's order: in progress, failed, current. */
  function judge(object: Record<string, unknown>): string {
    const { inProgress, failed, current } =
      healthCheckExprs.find(({ kind }) => kind === object["kind"]) ?? assert.fail("no expressions");
    const holds = (expression: string | undefined): boolean =>
      expression !== undefined && plan(env, parse(expression))(celValue(object) as never) === true;
    if (holds(inProgress)) return "InProgress";
    if (holds(failed)) return "Failed";
    return holds(current) ? "Current" : "InProgress";
  }

  for (const [name, object, , expected] of CASES)
    if (expected !== undefined)
      it(`of ${name} is ${expected}`, () => assert.equal(judge(object as Record<string, unknown>), expected));
});

/** Whole numbers are integers in CEL. */
function celValue(value: unknown): unknown {
  if (typeof value === "number") return BigInt(Math.trunc(value));
  if (Array.isArray(value)) return value.map(celValue);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, celValue(part)]));
  return value;
}

function toLua(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(toLua).join(",")}}`;
  if (typeof value !== "object" || value === null)
    return value === undefined || value === null ? "nil" : JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, part]) => `[${JSON.stringify(key)}]=${toLua(part)}`)
    .join(",")}}`;
}
