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

const NAME = "app.kubernetes.io/name";
const policies = read("infra/manifests/network-policy/policies.yaml").map(({ metadata, spec }) => ({
  name: metadata?.name,
  ...(spec as Policy),
}));

/** Labels of the pods that a manifest makes. */
const podNames = (file: string): (string | undefined)[] =>
  read(file).flatMap((manifest) =>
    collect(manifest, (object) => (object["spec"] as { containers?: object } | undefined)?.containers && object).map(
      (template) => (template["metadata"] as { labels: Record<string, string> }).labels[NAME],
    ),
  );

describe("the network policies", () => {
  it("cover every pod of their namespace, in both directions", () => {
    const files = globSync("infra/manifests/**/*.yaml", { cwd: ROOT, exclude: ["infra/manifests/node-updates/**"] });
    const pods = files.flatMap(podNames);
    assert.deepEqual(new Set(pods), new Set(policies.map(({ podSelector }) => podSelector.matchLabels[NAME])));
    for (const { name, podSelector, policyTypes } of policies) {
      assert.deepEqual(podSelector.matchLabels, { [NAME]: name });
      assert.deepEqual(policyTypes, ["Ingress", "Egress"]);
    }
  });

  it("name the peers of every rule: a rule without any is open to everybody", () => {
    for (const { ingress = [], egress } of policies)
      for (const { from, to } of [...ingress, ...egress]) assert.ok((from ?? to ?? []).length > 0);
  });

  it("let only the API server to the webhooks and Prometheus to the metrics, by ports that the Deployment has", () => {
    const deployment = find("functions/deployment.yaml", "Deployment", "zonewise-functions");
    const ports = collect(deployment, (object) => (object["containerPort"] === undefined ? undefined : (object["name"] as string)));
    const open = policies.flatMap(({ ingress = [] }) => ingress);
    assert.deepEqual(open.flatMap((rule) => rule.ports?.map(({ port }) => port) ?? []).toSorted(), ports.toSorted());
    assert.deepEqual(
      open.map(({ from = [] }) => Object.keys(from[0] ?? {})),
      [["ipBlock"], ["namespaceSelector", "podSelector"]],
    );
  });

  it("hold a range that no API server accepts until it is filled in, which is in one place", () => {
    const ranges = policies.flatMap((policy) => collect(policy, (object) => object["cidr"] as string | undefined));
    assert.deepEqual([...new Set(ranges)], ["API_SERVER_CIDR"]);
    const source = find("network-policy/source.yaml", "ConfigMap", "zonewise-network");
    assert.deepEqual(source["data"], { apiServer: "API_SERVER_CIDR", monitoring: "monitoring" });
  });
});
