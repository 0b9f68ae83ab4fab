/**
 * What still goes while all functions are down and the webhooks of downscales fail closed, and what is refused all the
 * same.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { define } from "../stage/definitions.ts";
import { createBudget } from "../stage/eviction-stage.ts";
import { createZone, patchOf, SCALE_METHODS } from "./scale-methods.ts";
import { openWebhookStage } from "./webhook-stage.ts";

const NO_DOWNSCALE = { "grafana.com/no-downscale": "true" };
const PREPARE = { "grafana.com/prepare-downscale": "true" };

const ZONES = [
  ["plain", {}],
  ["kept", NO_DOWNSCALE],
  ["prepared", PREPARE],
  ["both", { ...NO_DOWNSCALE, ...PREPARE }],
] as const;

const REFUSED =
  /ValidatingAdmissionPolicy 'no-downscale.*downscale of statefulsets\/(kept|both) in .* from 3 to \d replicas is not allowed because/;

/** A policy judges a Scale only while the API server knows the object's version; the webhook behind it is down. */
const REFUSED_SCALE =
  /failed calling webhook|ValidatingAdmissionPolicy 'no-downscale-statefulsets-scale.*from 3 to \d replicas is not allowed because/;

const merge = (name: string, patch: object): string[] => ["patch", "statefulset", name, "-p", JSON.stringify(patch)];
const image = { spec: { template: { spec: { containers: [{ name: "app", image: "app:2" }] } } } };

const GOES: readonly [string, (name: string) => readonly string[]][] = [
  ["an image change", (name) => merge(name, image)],
  ["a restart", (name) => ["rollout", "restart", "statefulset", name]],
  ["an annotation", (name) => ["annotate", "statefulset", name, "note=1"]],
  ["growth by the scale", (name) => ["scale", "statefulset", name, "--replicas=4"]],
  ["growth of the object", (name) => ["patch", "statefulset", name, "-p", patchOf(5)]],
  ["another label", (name) => ["label", "statefulset", name, "note=1"]],
];

test("with all functions down", async (t) => {
  const stage = await openWebhookStage(t, {}, { noDownscale: "policy" });
  for (const [name, labels] of ZONES) await createZone(stage, name, labels);
  await stage.stopFunctions();

  await t.test(
    "no labelled zone shrinks, whatever way kubectl takes; of whole objects the policy says why",
    async () => {
      for (const to of [2, 0])
        for (const [way, scale] of Object.entries(SCALE_METHODS))
          for (const name of ["kept", "both"]) {
            const { text } = await scale(stage, name, to);
            assert.match(text, /scale|subresource/.test(way) ? REFUSED_SCALE : REFUSED, `${way} of ${name}`);
          }
      for (const name of ["kept", "both"]) {
        const unlabelled = { metadata: { labels: { "grafana.com/no-downscale": null } }, spec: { replicas: 1 } };
        assert.match((await stage.kubectl(merge(name, unlabelled))).text, REFUSED);
      }
    },
  );

  await t.test("no labelled Deployment shrinks, neither by its object nor by its scale", async () => {
    const labels = { app: "web" };
    const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "x" }] } };
    const metadata = { name: "web", labels: NO_DOWNSCALE };
    const object = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata,
      spec: { replicas: 2, selector: { matchLabels: labels }, template },
    };
    assert.equal((await stage.kubectl(["apply", "-f", "-"], object)).code, 0);
    const { text } = await stage.kubectl(["patch", "deployment", "web", "-p", patchOf(0)]);
    assert.match(text, /ValidatingAdmissionPolicy 'no-downscale.* from 2 to 0 replicas is not allowed because/);
    const byScale = await stage.kubectl(["scale", "deployment", "web", "--replicas=1"]);
    assert.match(byScale.text, /from 2 to 1 replicas is not allowed because|failed calling webhook "no-downscale-/);
    assert.equal((await stage.kubectl(["scale", "deployment", "web", "--replicas=3"])).code, 0);
  });

  await t.test("no zone that is to be prepared shrinks, as its pods cannot be notified", async () => {
    for (const scale of [SCALE_METHODS["scale"], SCALE_METHODS["patch"]])
      assert.match((await scale?.(stage, "prepared", 2))?.text ?? "", /failed calling webhook "prepare-downscale-/);
    assert.equal((await stage.get("prepared")).spec?.replicas, 3);
  });

  for (const [what, args] of GOES)
    await t.test(`${what} succeeds`, async () => {
      for (const [name] of ZONES) {
        const { code, text } = await stage.kubectl(args(name));
        assert.equal(code, 0, `${name}: ${text}`);
      }
    });

  await t.test(
    "one without labels shrinks by its own object, and not by its scale, which does not tell labels",
    async () => {
      assert.equal((await stage.kubectl(["patch", "statefulset", "plain", "-p", patchOf(4)])).code, 0);
      assert.match(
        (await stage.kubectl(["scale", "statefulset", "plain", "--replicas=3"])).text,
        /failed calling webhook/,
      );
    },
  );

  await t.test("a budget is created, as its definition allows it", async () => {
    await define(stage.admin, "zoneawarepoddisruptionbudgets");
    await createBudget(stage, "cache", { podNamePartitionRegex: "zone-[a-z]-([0-9]+)" });
  });
});
