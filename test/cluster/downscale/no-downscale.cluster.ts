/**
 * no-downscale behind a real API server, asked by kubectl: by the policies (a Scale perhaps by the
 * webhook behind them), by the webhook, and by both; verdicts and words are the same.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createZone, patchOf, SCALE_METHODS } from "./scale-methods.ts";
import { openWebhookStage, type WebhookStage } from "./webhook-stage.ts";

const LABEL = { "grafana.com/no-downscale": "true" };

const GUARDS = {
  policy:
    /ValidatingAdmissionPolicy 'no-downscale.*' denied request: |admission webhook "no-downscale-.*" denied the request: /,
  webhook: /admission webhook "no-downscale-.*\.grafana\.com" denied the request: /,
  both: /denied (the )?request: /,
} as const;

/** What is refused, in these words and no others. */
async function refused(
  stage: WebhookStage,
  change: Promise<{ code: number; text: string }>,
  by: RegExp,
  why: string,
): Promise<void> {
  const { code, text } = await change;
  assert.notEqual(code, 0, text);
  assert.match(text, by);
  const said = `downscale of ${why.replace(" from", ` in ${stage.namespace} from`)} replicas is not allowed because it has the label 'grafana.com/no-downscale=true'`;
  assert.ok(text.includes(said), text);
}

async function accepted(change: Promise<{ code: number; text: string }>): Promise<void> {
  const { code, text } = await change;
  assert.equal(code, 0, text);
}

for (const [guard, by] of Object.entries(GUARDS)) {
  const noDownscale = guard as keyof typeof GUARDS;

  test(`no-downscale by ${guard}: whatever way kubectl takes`, async (t) => {
    const stage = await openWebhookStage(t, {}, { noDownscale });
    await createZone(stage, "free");
    await createZone(stage, "kept", LABEL);
    for (const [way, scale] of Object.entries(SCALE_METHODS)) {
      for (const to of [2, 0]) await refused(stage, scale(stage, "kept", to), by, `statefulsets/kept from 3 to ${to}`);
      assert.equal((await stage.get("kept")).spec?.replicas, 3, way);
      for (const to of [2, 3]) await accepted(scale(stage, "free", to));
    }
    const patch = (labels: object, replicas: number): ReturnType<WebhookStage["kubectl"]> =>
      stage.kubectl([
        "patch",
        "statefulset",
        "kept",
        "-p",
        JSON.stringify({ metadata: { labels }, spec: { replicas } }),
      ]);
    await refused(stage, patch({ "grafana.com/no-downscale": null }, 2), by, "statefulsets/kept from 3 to 2");
    await accepted(stage.kubectl(["scale", "statefulset", "kept", "--replicas=4"]));
    await accepted(stage.kubectl(["rollout", "restart", "statefulset", "kept"]));
    await accepted(stage.kubectl(["label", "statefulset", "kept", "grafana.com/no-downscale-"]));
    // Another value, or another spelling of it, is no label.
    for (const value of ["false", "True"])
      await accepted(patch({ "grafana.com/no-downscale": value }, value === "True" ? 2 : 3));
    // What comes with the smaller number is too late.
    await accepted(patch(LABEL, 1));
  });

  test(`no-downscale by ${guard}: a Deployment and a ReplicaSet, by their own objects and by their scale`, async (t) => {
    const stage = await openWebhookStage(t, {}, { noDownscale });
    const labels = { app: "web" };
    const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "x" }] } };
    for (const kind of ["Deployment", "ReplicaSet"]) {
      const plural = `${kind.toLowerCase()}s`;
      const object = {
        apiVersion: "apps/v1",
        kind,
        metadata: { name: "web", labels: LABEL },
        spec: { replicas: 2, selector: { matchLabels: labels }, template },
      };
      await accepted(stage.kubectl(["apply", "-f", "-"], object));
      await refused(stage, stage.kubectl(["scale", plural, "web", "--replicas=1"]), by, `${plural}/web from 2 to 1`);
      await refused(stage, stage.kubectl(["patch", plural, "web", "-p", patchOf(0)]), by, `${plural}/web from 2 to 0`);
      await accepted(stage.kubectl(["scale", plural, "web", "--replicas=3"]));
    }
  });
}
