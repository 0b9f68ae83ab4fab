/**
 * Requirements about node updates as a whole: what they use, what they serve, and what they leave out of the original.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { readNode } from "../../../reconciler/nodes/node.ts";
import { moveFor } from "../../../reconciler/nodes/state-machine.ts";
import { ROUTES } from "../../../reconciler/nodes/routes.ts";
import { parseWindow } from "../../../reconciler/model/window.ts";
import { allowedActive } from "../../../reconciler/nodes/policy.ts";
import { collect, read } from "../../infra/manifests.ts";
import { policy } from "./fixture.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
const SOURCES = "{{reconciler,functions}/nodes/**/*.ts,reconciler/model/window.ts}";

interface Container {
  readonly env: readonly {
    readonly name: string;
    readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath: string } };
  }[];
}

describe("node updates", () => {
  it("use no package but those of schemas and schedules: nothing depends on a cloud", () => {
    const texts = globSync(SOURCES, { cwd: ROOT }).map((file) => readFileSync(`${ROOT}/${file}`, "utf8"));
    const imported = texts.flatMap((text) =>
      [...text.matchAll(/from "(?<name>[^."][^"]*)"/g)].map(({ groups }) => groups?.["name"] ?? ""),
    );
    assert.deepEqual([...new Set(imported)].filter((name) => !name.startsWith("node:")).toSorted(), [
      "croner",
      "zod",
      "zod/mini",
      "zod/v4/locales/en.js",
    ]);
    assert.ok(texts.every((text) => !/amazonaws|169\.254\.169\.254/.test(text)));
  });

  it("serve the routes of the original and nothing else: no dashboard, and metrics neither of their own kind nor behind agents' tokens", () =>
    assert.deepEqual(
      Object.values(ROUTES).map(({ method, path }) => `${method} ${path}`),
      [
        "POST /bottlerocket-node-resource",
        "PUT /bottlerocket-node-resource",
        "POST /bottlerocket-node-resource/cordon-and-drain",
        "POST /bottlerocket-node-resource/uncordon",
        "POST /bottlerocket-node-resource/exclude-from-lb",
        "POST /bottlerocket-node-resource/remove-exclusion-from-lb",
        "POST /crdconvert",
        "GET /ping",
      ],
    ));

  it("leave MonitoringUpdate only by a reading of the node and its work", () => {
    const move = moveFor("MonitoringUpdate", "MonitoringUpdate");
    assert.equal(move.by === "reconciler" && move.once, "healthy");
  });

  it("tell the reconciler and the agent on which node they run: its own comes last", () => {
    for (const file of ["reconciler/cronjob", "node-updates/agent"]) {
      const [containers = []] = collect(
        read(`infra/manifests/${file}.yaml`)[0],
        (object) => object["containers"] as Container[] | undefined,
      );
      const named = containers.flatMap(({ env }) => env).find(({ name }) => name === "MY_NODE_NAME");
      assert.equal(named?.valueFrom?.fieldRef?.fieldPath, "spec.nodeName", file);
    }
  });

  it("spread the replicas of the API, and give the agent's pod no field that a pod does not have", () => {
    const specOf = (file: string) =>
      (
        read(`infra/manifests/node-updates/${file}.yaml`)[0] as unknown as {
          spec: { template: { spec: Record<string, unknown> } };
        }
      ).spec.template.spec;
    assert.ok("affinity" in specOf("api"));
    assert.deepEqual(
      Object.keys(specOf("agent")).filter((field) => field.includes("_") || field === "topologySpreadConstraints"),
      [],
    );
  });
});

/** The cases that the original tests and no other table here has. */
describe("the original's cases", () => {
  const MS = { s: 1000, h: 3_600_000, d: 86_400_000 };
  const next = (cron: string, from: string, count: number): number[] => {
    const parsed = parseWindow({ cron, timeZone: "UTC", lastStartSeconds: 0 });
    if ("problem" in parsed) throw new Error(parsed.problem);
    return parsed.schedule.nextRuns(count, new Date(from)).map((date) => date.getTime());
  };

  for (const [cron, distance] of [
    ["* * * * * * *", MS.s],
    ["10 10 10 * * * *", 24 * MS.h],
    ["10 10 10 * * Mon *", 7 * MS.d],
  ] as const)
    it(`the next two points of ${cron} are ${distance} ms apart`, () => {
      const [first = 0, second = 0] = next(cron, "2026-06-01T00:00:00Z", 2);
      assert.equal(second - first, distance);
    });

  for (const [from, cron, ms] of [
    ["2099-12-01T02:00:00Z", "* * 4 1 12 * 2099", 2 * MS.h],
    ["2099-12-01T00:00:00Z", "* * * 31 12 * 2099", 30 * MS.d],
    ["2099-12-01T00:00:00Z", "1 * * 1 12 * 2099", MS.s],
  ] as const)
    it(`from ${from} it is ${ms} ms to ${cron}`, () =>
      assert.equal((next(cron, from, 1)[0] ?? 0) - Date.parse(from), ms));

  it("MAX_CONCURRENT_UPDATE is read as no limit, or as a number", () => {
    assert.equal(allowedActive(policy({ maxConcurrent: "unlimited" }).maxConcurrent, 3), Number.POSITIVE_INFINITY);
    assert.equal(allowedActive(policy({ maxConcurrent: "2" }).maxConcurrent, 3), 2);
  });

  for (const [labels, managed] of [
    [{ "bottlerocket.aws/updater-interface-version": "2.0.0" }, true],
    [{ "bottlerocket.aws/updater-interface-version": "1.0.0" }, false],
    [{}, false],
  ] as const)
    it(`a node with ${JSON.stringify(labels)} is ${managed ? "" : "not "}managed`, () =>
      assert.equal(readNode({ metadata: { name: "a", labels } }, undefined).managed, managed));
});
