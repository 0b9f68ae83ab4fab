/** The optional network policies: one for each kind of pod, nothing open to everybody, ports that exist. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { describe, it } from "node:test";
import { collect, find, read, ROOT } from "./manifests.ts";

interface Rule {
  readonly from?: readonly object[];
  readonly to?: readonly object[];
  readonly ports?: readonly { readonly port: string | number }[];
}

interface Policy {
  readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
  readonly policyTypes: readonly string[];
  readonly ingress?: readonly Rule[];
  readonly egress: readonly Rule[];
}

/** The installations, with the source of their values. */
const INSTALLATIONS = [
  {
    folder: "network-policy",
    source: "zonewise-network",
    pods: "{all-namespaces,certificates,functions,reconciler,status-page}",
  },
  { folder: "node-updates/network-policy", source: "zonewise-node-network", pods: "node-updates" },
].map((one) => ({
  ...one,
  policies: read(`infra/manifests/${one.folder}/policies.yaml`).map(({ spec }) => spec as Policy),
}));
const policies = INSTALLATIONS.flatMap((one) => one.policies);

/** Labels of the pods that a manifest makes. */
const podLabels = (file: string): Readonly<Record<string, string>>[] =>
  read(file).flatMap((manifest) =>
    collect(manifest, (object) => (object["spec"] as { containers?: object } | undefined)?.containers && object).map(
      (template) => (template["metadata"] as { labels: Record<string, string> }).labels,
    ),
  );

const byText = (labels: readonly Readonly<Record<string, string>>[]): string[] =>
  labels.map((one) => JSON.stringify(one)).toSorted();

describe("the network policies", () => {
  for (const { folder, pods, policies: own } of INSTALLATIONS)
    it(`of ${folder} cover every pod of ours, in both directions`, () => {
      const labels = globSync(`infra/manifests/${pods}/*.yaml`, { cwd: ROOT }).flatMap(podLabels);
      assert.deepEqual(byText(labels), byText(own.map(({ podSelector }) => podSelector.matchLabels)));
      for (const { policyTypes } of own) assert.deepEqual(policyTypes, ["Ingress", "Egress"]);
    });

  it("cover the pods of every folder", () => {
    const withPods = globSync("infra/manifests/**/*.yaml", { cwd: ROOT }).filter((file) => podLabels(file).length > 0);
    const covered = new Set(
      INSTALLATIONS.flatMap(({ pods }) => globSync(`infra/manifests/${pods}/*.yaml`, { cwd: ROOT })),
    );
    assert.deepEqual(
      withPods.filter((file) => !covered.has(file)),
      [],
    );
  });

  it("hold a range that no API server accepts until it is filled in, which is in one place", () => {
    const ranges = policies.flatMap((policy) => collect(policy, (object) => object["cidr"] as string | undefined));
    assert.deepEqual([...new Set(ranges)], ["API_SERVER_CIDR"]);
    for (const { folder, source } of INSTALLATIONS)
      assert.deepEqual(find(`${folder}/source.yaml`, "ConfigMap", source)["data"], {
        apiServer: "API_SERVER_CIDR",
        monitoring: "monitoring",
      });
  });
});
