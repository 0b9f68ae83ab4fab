/** The job and the reconciler inject the CA into webhook configurations, with the manifests' RBAC. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
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
    const added = new Set(["no-downscale", "prepare-downscale", "zpdb-validation"]);
    for (const name of stage.hooks.filter((one) => !added.has(one))) await stage.addHook(name);
    await stage.addHook("zpdb-validation");
    await inject("zpdb-validation");
    await stage.patchHook("no-downscale", stage.hook("no-downscale").webhooks);
    assert.equal(await stage.bundle("no-downscale"), undefined);
    await inject("no-downscale");
    const { ca } = await stage.secret();
    for (const name of stage.hooks) assert.equal(await stage.bundle(name), ca, name);
    assert.equal(await runJob(), "", "nothing is left to do");
  });

  it("configurations that are created or edited between two ticks get the CA from the reconciler", async () => {
    const reconciler = stage.start("reconciler", { RECONCILE_INTERVAL: "1h" });
    await reconciler.untilOutput(/"msg":"tick"/);
    const { ca } = await stage.secret();
    const untilInjected = (): Promise<void> =>
      until(
        () => `the CA bundle is injected: ${reconciler.output()}`,
        async () => (await stage.bundle("pod-eviction")) === ca,
      );
    await stage.removeHook("pod-eviction");
    await stage.addHook("pod-eviction");
    await untilInjected();
    await stage.patchHook("pod-eviction", stage.hook("pod-eviction").webhooks);
    await untilInjected();
    assert.equal(await reconciler.end(), 0);
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
