/** The job and the reconciler inject the CA into webhook configurations, with the manifests' RBAC. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { until } from "../stage/until.ts";
import { type CertificateStage, openCertificateStage } from "./certificate-stage.ts";

describe("the CA of webhook configurations on a real control plane", () => {
  let stage: CertificateStage;
  before(async () => void (stage = await openCertificateStage()));
  after(() => stage.close());

  const runJob = async (): Promise<string> => {
    const job = stage.start("job");
    assert.equal(await job.exited, 0, job.output());
    return job.output();
  };
  /** Runs the reconciler, as the CronJob does, until it injects the CA bundle. */
  const inject = async (name: string): Promise<void> => {
    const reconciler = stage.start("reconciler");
    await reconciler.untilOutput(new RegExp(`were given the CA bundle.*${name}-${stage.namespace}`));
    assert.equal(await reconciler.end(), 0);
  };

  it("configurations that are created before the job, after it or later, or edited, all get the CA", async () => {
    await stage.addHook("no-downscale");
    await runJob();
    await stage.addHook("prepare-downscale");
    await inject("prepare-downscale");
    await stage.addHook("pod-eviction");
    await stage.addHook("zpdb-validation");
    await inject("zpdb-validation");
    await stage.patchHook("no-downscale", stage.hook("no-downscale").webhooks);
    assert.equal(await stage.bundle("no-downscale"), undefined);
    await inject("no-downscale");
    const { ca } = await stage.secret();
    for (const name of ["no-downscale", "prepare-downscale", "pod-eviction", "zpdb-validation"])
      assert.equal(await stage.bundle(name), ca);
    assert.equal(await runJob(), "", "nothing is left to do");
  });

  it("configurations that are created or edited between two ticks get the CA from the reconciler", async (t) => {
    const reconciler = stage.start("reconciler", { RECONCILE_INTERVAL: "1h" });
    await reconciler.untilOutput(/"msg":"tick"/);
    const { ca } = await stage.secret();
    const times: number[] = [];
    for (let round = 0; round < 10; round++) {
      if (round % 2 === 0) await stage.removeHook("pod-eviction");
      if (round % 2 === 0) await stage.addHook("pod-eviction");
      else await stage.patchHook("pod-eviction", stage.hook("pod-eviction").webhooks);
      const from = performance.now();
      await until(
        () => `the CA bundle is injected: ${reconciler.output()}`,
        async () => (await stage.bundle("pod-eviction")) === ca,
      );
      times.push(performance.now() - from);
      // Usually configurations change rarely: pause. Every third change follows the previous one immediately.
      if (round % 3 !== 0) await wait(2500);
    }
    t.diagnostic(`without a CA bundle for ${times.map((ms) => ms.toFixed(0)).join(", ")} ms`);
    assert.equal(await reconciler.end(), 0);
    assert.doesNotMatch(reconciler.output(), /are not watched/);
  });
});

describe("the first certificate on a real control plane", () => {
  let stage: CertificateStage;
  before(async () => void (stage = await openCertificateStage()));
  after(() => stage.close());

  for (const [found, prepare] of [
    ["no Secret", async () => {}],
    ["an empty Secret", () => stage.emptySecret()],
  ] as const)
    it(`is made by the reconciler where there is ${found}, with the rights that it has`, async () => {
      await prepare();
      await stage.addHook("no-downscale");
      const reconciler = stage.start("reconciler");
      await reconciler.untilOutput(/the certificate of the webhooks was made/);
      await reconciler.untilOutput(/were given the CA bundle/);
      assert.equal(await reconciler.end(), 0);
      assert.equal(await stage.bundle("no-downscale"), (await stage.secret())["ca.crt"]);
      await stage.removeHook("no-downscale");
    });
});
