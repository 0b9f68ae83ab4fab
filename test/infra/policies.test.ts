/** The policies of J02 hold with our decisions. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VARIABLES } from "../../infra/config/variables.ts";
import { collect, find, HOOKS } from "./manifests.ts";

interface CronJobSpec {
  readonly schedule: string;
  readonly concurrencyPolicy: string;
  readonly jobTemplate: {
    readonly spec: {
      readonly activeDeadlineSeconds: number;
      readonly backoffLimit: number;
      readonly podFailurePolicy?: object;
      readonly template: { readonly spec: { readonly terminationGracePeriodSeconds?: number } };
    };
  };
}

describe("J02 the policies", () => {
  it("what keeps pods fails closed, and what another rule of ours makes good fails open", () => {
    const failing = (policy: string): readonly string[] =>
      HOOKS.filter(({ failurePolicy }) => failurePolicy === policy).map(({ name }) => name);
    assert.deepEqual(failing("Fail"), ["no-downscale", "pod-eviction", "prepare-downscale"]);
    assert.deepEqual(failing("Ignore"), ["phased-defaults", "phased-validation", "raise-partition", "zpdb-validation"]);
  });

  it("each webhook is asked within 10 s, and about its own namespace alone", () => {
    for (const { name, timeoutSeconds, namespaceSelector } of HOOKS)
      assert.deepEqual(
        [timeoutSeconds, namespaceSelector],
        [10, { matchLabels: { "kubernetes.io/metadata.name": "zonewise" } }],
        name,
      );
  });

  for (const [file, name] of [
    ["reconciler/cronjob.yaml", "zonewise-reconciler"],
    ["certificates/cronjob.yaml", "zonewise-certificates"],
  ] as const) {
    it(`${name}: a run whose pod is stuck on a lost node keeps none of the later runs from starting, and each run has a deadline`, () => {
      const { concurrencyPolicy, jobTemplate } = find(file, "CronJob", name)["spec"] as CronJobSpec;
      assert.equal(concurrencyPolicy, "Allow");
      assert.ok(jobTemplate.spec.activeDeadlineSeconds > 0);
    });
  }

  it("at most three runs of the reconciler are there at once, however they end, each with a successor within its time and time for the end of its last step", () => {
    const { schedule, jobTemplate } = find("reconciler/cronjob.yaml", "CronJob", "zonewise-reconciler")[
      "spec"
    ] as CronJobSpec;
    const { activeDeadlineSeconds, template } = jobTemplate.spec;
    const everyMinute = 60;
    const budget = parseInt(VARIABLES.RECONCILE_TIME_BUDGET.default, 10);
    assert.equal(schedule, "* * * * *");
    const startingDeadline = 30;
    assert.ok(budget >= everyMinute + startingDeadline + 15, "a run that starts late still finds the one before");
    assert.ok(activeDeadlineSeconds >= budget + 15);
    assert.ok(activeDeadlineSeconds + (template.spec.terminationGracePeriodSeconds ?? 30) < 3 * everyMinute);
  });

  it("a run of the reconciler that is killed has a successor before the next minute, and one that fails by itself has none", () => {
    const { jobTemplate } = find("reconciler/cronjob.yaml", "CronJob", "zonewise-reconciler")["spec"] as CronJobSpec;
    const { backoffLimit, podFailurePolicy } = jobTemplate.spec;
    assert.equal(backoffLimit, 1);
    assert.deepEqual(podFailurePolicy, {
      rules: [{ action: "FailJob", onExitCodes: { operator: "In", values: [1, 2] } }],
    });
  });

  it("the functions mount the Secret that the job makes", () => {
    const [name] = collect(
      find("functions/deployment.yaml", "Deployment", "zonewise-functions"),
      (object) => object["secretName"] as string | undefined,
    );
    assert.equal(name, VARIABLES.SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME.default);
  });
});
