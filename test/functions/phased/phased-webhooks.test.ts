/** The webhooks of PhasedRollouts and of the StatefulSets that they manage (§16). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AdmissionRequest, Answer, Webhook } from "../../../functions/http/webhook.ts";
import { createPhasedDefaults } from "../../../functions/phased/phased-defaults.ts";
import { createPhasedValidation } from "../../../functions/phased/phased-validation.ts";
import { createRaisePartition } from "../../../functions/phased/raise-partition.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import { gateObject, type GateTraits } from "../../builders/gates.ts";
import { rolloutObject, type RolloutTraits } from "../../builders/phased.ts";
import { request } from "../samples.ts";

const stored: object[] = [];
const cluster = {
  // oxlint-disable-next-line require-yield
  async *list() {
    if (stored.length === 0) throw new RolloutError("Forbidden", "no right");
    yield { items: stored, resourceVersion: "1" };
  },
} as unknown as Cluster;

function ask(webhook: Webhook, object: unknown, more: Partial<AdmissionRequest> = {}): Promise<Answer> {
  const { subResource: _none, ...whole } = request;
  const context = {
    path: webhook.paths[0] ?? "",
    signal: new AbortController().signal,
    deadlineAt: Infinity,
    log: {} as never,
  };
  return webhook.handle({ ...whole, name: "guard", dryRun: false, operation: "CREATE", object, ...more }, context);
}

const WITHIN = { successWhen: "WithinBaseline", expr: 'sum(errors{pod=~"$(candidate_pods)"})' };
const BASELINE = { expr: 'sum(errors{pod=~"$(other_pods)"})', maxRatio: "2" };

describe("/mutate-sts-plus-v1alpha1-phasedrollout", () => {
  const webhook = createPhasedDefaults();
  const patchOf = async (check: object): Promise<unknown> => (await ask(webhook, rolloutObject({ check }))).patch;
  const add = (field: string, value: number): object => ({ op: "add", path: `/spec/check/${field}`, value });

  it("completes what is missing", async () =>
    assert.deepEqual(await patchOf({}), [
      add("initialDelaySeconds", 60),
      add("periodSeconds", 60),
      add("successThreshold", 3),
    ]));
  it("leaves what is given, and a 0", async () =>
    assert.deepEqual(await patchOf({ initialDelaySeconds: 0, periodSeconds: 5 }), [add("successThreshold", 3)]));
  it("patches nothing that is complete", async () =>
    assert.equal(await patchOf({ initialDelaySeconds: 1, periodSeconds: 1, successThreshold: 1 }), undefined));
  for (const object of [null, "x", {}, { spec: 1 }, { spec: { check: [] } }])
    it(`leaves ${JSON.stringify(object)} to the schema`, async () => {
      const { allowed, patch } = await ask(webhook, object);
      assert.deepEqual([allowed, patch], [true, undefined]);
    });
});

describe("/validate-sts-plus-v1alpha1-phasedrollout", () => {
  const webhook = createPhasedValidation({ cluster });
  const STATED = { successWhen: "NoData" };
  const validate = (traits: RolloutTraits, more?: Partial<AdmissionRequest>): Promise<Answer> =>
    ask(webhook, rolloutObject({ ...traits, query: { ...STATED, ...traits.query } }), more);

  const comparing = (more: object): RolloutTraits => ({ check: { ...more, query: { url: "prom", ...WITHIN } } });

  const REFUSED: readonly (readonly [string, RolloutTraits, RegExp])[] = [
    [
      "a long expression, where the definition lets it pass",
      { query: { expr: "x".repeat(4097) } },
      /spec\.check\.query\.expr: the expression is longer than 4096 characters/,
    ],
    ["another scheme", { query: { url: "ftp://prom" } }, /spec\.check\.query\.url has another scheme/],
    ["a URL without a host", { query: { url: "http://" } }, /has no valid host/],
    ["a backslash", { query: { url: "http://\\" } }, /backslash/],
    [
      "skipCheck and its other name, different",
      { spec: { skipCheck: true, standardRollingUpdate: false } },
      /another name of spec\.skipCheck/,
    ],
    [
      "a threshold of 0",
      { check: { successThreshold: 0, query: { expr: "up", url: "prom" } } },
      /spec\.check\.successThreshold: must be at least 1/,
    ],
    [
      "a placeholder that there is none of, in the query",
      { query: { expr: 'up{a="$(zone)"}' } },
      /spec\.check\.query\.expr: \$\(zone\) is not a placeholder here: those are \$\(namespace\), \$\(statefulset\)/,
    ],
    [
      "a placeholder where none can stand, in the baseline",
      comparing({ baseline: { expr: "sum($(other_pods))", maxRatio: "2" } }),
      /spec\.check\.baseline\.expr: \$\(other_pods\)/,
    ],
    ["a comparison without a baseline", { query: WITHIN }, /spec\.check\.baseline: a check with .* needs a baseline/],
    [
      "a baseline that nothing is compared with",
      { check: { baseline: BASELINE, query: { expr: "up == 0", url: "prom", successWhen: "NoData" } } },
      /spec\.check\.baseline: .* no other has one/,
    ],
    [
      "a comparison with pods that are gone at the final check",
      { ...comparing({ baseline: BASELINE }), spec: { finalCheck: true } },
      /spec\.finalCheck: \$\(other_pods\) stands for no pods after the last one/,
    ],
    ["an empty targetRef", { spec: { targetRef: "" } }, /spec\.targetRef: is empty/],
  ];
  for (const [name, traits, why] of REFUSED)
    it(`refuses ${name}`, async () => {
      const { allowed, code, message } = await validate(traits);
      assert.deepEqual([allowed, code], [false, 422]);
      assert.match(message ?? "", why);
    });

  const ADMITTED: readonly (readonly [string, RolloutTraits])[] = [
    ["a selector with a regular expression", { query: { expr: 'rate(errors{job=~"a.*"}[5m]) > 0' } }],
    ["a comparison of the updated pods with the others", comparing({ baseline: BASELINE })],
    [
      "a comparison with the time before, with a final check",
      {
        ...comparing({ baseline: { ...BASELINE, expr: WITHIN.expr, at: "BeforeRollout" } }),
        spec: { finalCheck: true },
      },
    ],
    ["a URL with a port", { query: { url: "http://host:456" } }],
    ["the URL of the original's documentation", { query: { url: "prom:9000/xx" } }],
    ["both names, equal", { spec: { skipCheck: true, standardRollingUpdate: true } }],
  ];
  for (const [name, traits] of ADMITTED)
    it(`admits ${name}, without a warning`, async () =>
      assert.deepEqual(await validate(traits), { allowed: true, reason: "Valid" }));

  it("refuses another targetRef", async () => {
    const oldObject = rolloutObject({ spec: { targetRef: "other" } });
    assert.match((await validate({}, { operation: "UPDATE", oldObject })).message ?? "", /targetRef cannot be changed/);
  });

  for (const [name, more] of [
    ["an object that is being deleted", { terminating: true }],
    ["an object whose spec stays as it is", {}],
  ] as const)
    it(`admits ${name}, however invalid`, async () => {
      const object = rolloutObject({ ...more, query: { expr: "up[$(zone)]" } });
      const oldObject =
        more && "terminating" in more
          ? rolloutObject()
          : rolloutObject({ query: { expr: "up[$(zone)]" }, finalizers: [] });
      assert.equal((await ask(webhook, object, { operation: "UPDATE", oldObject })).allowed, true);
    });

  it("warns if it does not say when a check is successful", async () => {
    const { allowed, warnings } = await ask(webhook, rolloutObject());
    assert.equal(allowed, true);
    assert.match(warnings?.[0] ?? "", /successWhen is not set.*unless PHASED_SUCCESS_WHEN of the reconciler says Data/);
  });
  it("warns of a second PhasedRollout on the same StatefulSet", async () => {
    stored.push(rolloutObject({ name: "first" }));
    const { warnings } = await validate({});
    stored.length = 0;
    assert.match(warnings?.[0] ?? "", /target of PhasedRollout first/);
  });
});

describe("/validate-sts-plus-v1alpha1-phasedrollout about gates (§14.12)", () => {
  const webhook = createPhasedValidation({ cluster });
  const resource = { group: "zonewise.dev", version: "v1", resource: "rolloutgates" };
  const validate = (traits: GateTraits, more?: Partial<AdmissionRequest>): Promise<Answer> =>
    ask(webhook, gateObject(traits), { resource, ...more });
  const url = "http://prometheus";
  const asking = (expr: string, spec: object = {}): GateTraits => ({ spec, check: { query: { expr, url } } });
  const comparing = (baseline: object, spec: object = {}): GateTraits => ({
    spec,
    check: { query: { expr: WITHIN.expr, url }, successWhen: "WithinBaseline", baseline: { ...BASELINE, ...baseline } },
  });
  const update = (before: GateTraits): Partial<AdmissionRequest> => ({
    operation: "UPDATE",
    oldObject: gateObject(before),
  });
  const UNFILLED = asking("sum($(other_pods))");
  const PART = asking("rate(x[5$(range)])");

  const REFUSED: readonly (readonly [string, GateTraits, RegExp, before?: GateTraits])[] = [
    ["a spec that cannot be read", { spec: { when: ["Never"] } }, /^spec: it cannot be read/],
    [
      "a URL that cannot be asked",
      { check: { query: { expr: "up", url: "ftp://prom" } } },
      /^spec\.checks: check errors: query\.url has another scheme/,
    ],
    [
      "a placeholder where none can stand, in the query",
      UNFILLED,
      /^spec\.checks: check errors: query\.expr: \$\(other_pods\) must stand in the quotes after =~ or !~/,
    ],
    [
      "one where none can stand, in the baseline",
      comparing({ expr: 'sum(errors{pod="$(other_pods)"})' }),
      /check errors: baseline\.expr: \$\(other_pods\) must stand in the quotes after =~ or !~/,
    ],
    [
      "a name that ends the string that it stands in",
      asking('up{a="$(group)"}', { group: 'a"} or vector(1) #' }),
      /\$\(group\) does not stand for a valid object name/,
    ],
    [
      "a zone after the last one",
      asking('up{zone="$(zone)"}', { when: ["BetweenZones", "AfterLastZone"] }),
      /\$\(zone\) is not a placeholder here/,
    ],
    [
      "a comparison with no pods",
      comparing({}, { when: ["AfterLastZone"] }),
      /^spec\.checks: check errors: \$\(other_pods\) stands for no pods at AfterLastZone/,
    ],
    ["another fault of an invalid gate", PART, /\$\(range\) must stand where a duration does/, UNFILLED],
  ];
  for (const [name, traits, why, before] of REFUSED)
    it(`refuses ${name}`, async () => {
      const { allowed, code, message } = await validate(traits, before && update(before));
      assert.deepEqual([allowed, code], [false, 422]);
      assert.match(message ?? "", why);
    });

  const ADMITTED: readonly (readonly [string, GateTraits, before?: GateTraits])[] = [
    ["a comparison of the updated pods with the others", comparing({})],
    ["a gate that only soaks", { spec: { soakSeconds: 60, checks: [] } }],
    ["what is no PromQL, as Prometheus says so", asking("() ".repeat(1365))],
    ["an invalid gate that is mended", asking("up == 0"), UNFILLED],
  ];
  for (const [name, traits, before] of ADMITTED)
    it(`admits ${name}, without a warning`, async () =>
      assert.deepEqual(await validate(traits, before && update(before)), { allowed: true, reason: "Valid" }));

  it("lets an invalid gate observe from now on, with a warning", async () => {
    const { allowed, warnings } = await validate(asking("sum($(other_pods))", { mode: "Observe" }), update(UNFILLED));
    assert.equal(allowed, true);
    assert.match(warnings?.[0] ?? "", /\$\(other_pods\) must stand .*it stays in force/);
  });

  it("names all that is wrong", async () => {
    const checks = ["a", "b"].map((name) => ({ name, successWhen: "Data", query: { expr: "x[$(zone)]", url: "x" } }));
    const { message = "" } = await validate({ spec: { checks } });
    for (const name of ["a", "b"])
      assert.match(message, new RegExp(`check ${name}: query.expr: \\$\\(zone\\) must stand`));
  });
  it("admits an update that leaves the spec, or that comes with the deletion, however invalid", async () => {
    const invalid = asking("x[$(zone)]");
    assert.deepEqual(await validate(invalid, update(invalid)), { allowed: true, reason: "Unchanged" });
    const object = gateObject(invalid);
    const metadata = { ...object.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
    const answer = await ask(webhook, { ...object, metadata }, { resource, ...update(asking("up")) });
    assert.equal(answer.allowed, true);
  });
  it("says of which kind it could not check one", () => {
    const { warnings } = webhook.onFault(new Error("x"), { ...request, resource });
    assert.deepEqual(warnings, ["the RolloutGate could not be checked"]);
  });
  it("says no more of what is no gate than its definition", async () => {
    for (const object of [null, "x", {}, { spec: 1 }, { spec: {} }])
      assert.deepEqual(await ask(webhook, object, { resource }), { allowed: true, reason: "Valid" });
  });
});

it("/admission/raise-partition admits what it cannot read", async () =>
  assert.equal((await ask(createRaisePartition(), "x", { operation: "UPDATE" })).allowed, true));

it("all of them admit when they fail", () => {
  for (const webhook of [createPhasedDefaults(), createPhasedValidation({ cluster }), createRaisePartition()])
    assert.equal(webhook.onFault(new Error("x"), request).allowed, true);
});
