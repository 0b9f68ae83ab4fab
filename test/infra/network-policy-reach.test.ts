/**
 * The optional network policies cover every pod of ours. Once their two values are filled in, they let exactly the
 * connections pass that we need, by the rules of networking.k8s.io/v1 as a network plugin applies them.
 */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { describe, it } from "node:test";
import { collect, find, read, ROOT } from "./manifests.ts";

type Labels = Readonly<Record<string, string>>;

interface Peer {
  readonly ipBlock?: { readonly cidr: string };
  readonly podSelector?: { readonly matchLabels?: Labels };
  readonly namespaceSelector?: { readonly matchLabels?: Labels };
}

interface Rule {
  readonly from?: readonly Peer[];
  readonly to?: readonly Peer[];
  readonly ports?: readonly { readonly port: number | string; readonly protocol?: string }[];
}

interface Policy {
  readonly namespace: string;
  readonly podSelector: { readonly matchLabels: Labels };
  readonly policyTypes: readonly string[];
  readonly ingress?: readonly Rule[];
  readonly egress?: readonly Rule[];
}

/** A pod, or a machine if it has no namespace. */
interface Party {
  readonly namespace?: string;
  readonly labels?: Labels;
  /** The API servers are the range that is filled in. */
  readonly isApiServer?: boolean;
  readonly ports?: Readonly<Record<string, number>>;
}

const NODES = "brupop-bottlerocket-aws";
const policiesOf = (file: string, namespace: string): Policy[] =>
  read(`infra/manifests/${file}/policies.yaml`).map(({ spec }) => ({
    ...(spec as Omit<Policy, "namespace">),
    namespace,
  }));
const POLICIES = [...policiesOf("network-policy", "zonewise"), ...policiesOf("node-updates/network-policy", NODES)];

const includes = (labels: Labels = {}, selector: Labels = {}): boolean =>
  Object.entries(selector).every(([key, value]) => labels[key] === value);

/** Whether a peer of a rule means the party, for a policy of this namespace. */
function isMeant({ ipBlock, podSelector, namespaceSelector }: Peer, party: Party, own: string): boolean {
  if (ipBlock) return ipBlock.cidr === "API_SERVER_CIDR" && party.isApiServer === true;
  if (party.namespace === undefined || !includes(party.labels, podSelector?.matchLabels)) return false;
  if (!namespaceSelector) return party.namespace === own;
  return includes({ "kubernetes.io/metadata.name": party.namespace }, namespaceSelector.matchLabels);
}

interface Connection {
  readonly from: Party;
  readonly to: Party;
  readonly port: number;
  readonly protocol?: string;
}

/** Whether the policies of one side let it pass: all do if none selects the pod. */
function passes(side: "ingress" | "egress", { from, to, port, protocol = "TCP" }: Connection): boolean {
  const [pod, peer] = side === "ingress" ? [to, from] : [from, to];
  const own = POLICIES.filter(
    ({ namespace, podSelector }) => namespace === pod.namespace && includes(pod.labels, podSelector.matchLabels),
  );
  const isPort = (one: { readonly port: number | string; readonly protocol?: string }): boolean =>
    (one.protocol ?? "TCP") === protocol && (typeof one.port === "number" ? one.port : to.ports?.[one.port]) === port;
  return (
    own.length === 0 ||
    own.some((policy) =>
      policy[side]?.some(
        (rule) =>
          (rule.from ?? rule.to ?? []).some((one) => isMeant(one, peer, policy.namespace)) &&
          (!rule.ports || rule.ports.some(isPort)),
      ),
    )
  );
}

const connects = (connection: Connection): boolean => passes("egress", connection) && passes("ingress", connection);

/** A pod as a manifest makes it, with its named ports. */
function podOf(file: string, kind: string, name: string): Party {
  const workload = find(file, kind, name);
  const [template] = collect(workload, (object) =>
    (object["spec"] as { containers?: object } | undefined)?.containers ? object : undefined,
  );
  const ports = collect(template, ({ name, containerPort }) =>
    containerPort === undefined ? undefined : ([name, containerPort] as const),
  );
  const namespace = file.startsWith("node-updates/") ? NODES : "zonewise";
  return { namespace, labels: (template?.["metadata"] as { labels: Labels }).labels, ports: Object.fromEntries(ports) };
}

const PARTIES = {
  functions: podOf("functions/deployment.yaml", "Deployment", "zonewise-functions"),
  reconciler: podOf("reconciler/cronjob.yaml", "CronJob", "zonewise-reconciler"),
  certificates: podOf("certificates/cronjob.yaml", "CronJob", "zonewise-certificates"),
  "status page": podOf("status-page/deployment.yaml", "Deployment", "zonewise-status"),
  "node API": podOf("node-updates/api.yaml", "Deployment", "brupop-apiserver"),
  agent: podOf("node-updates/agent.yaml", "DaemonSet", "brupop-agent"),
  "API server": { isApiServer: true },
  internet: {},
  DNS: { namespace: "kube-system", labels: { "k8s-app": "kube-dns" } },
  Prometheus: { namespace: "MONITORING_NAMESPACE", labels: { "app.kubernetes.io/name": "prometheus" } },
  Pushgateway: { namespace: "MONITORING_NAMESPACE", labels: { "app.kubernetes.io/name": "pushgateway" } },
  "a zone's pod": { namespace: "zonewise", labels: { "rollout-group": "cache" } },
  "another namespace's pod": { namespace: "other", labels: { "app.kubernetes.io/name": "prometheus" } },
} satisfies Record<string, Party>;

type Name = keyof typeof PARTIES;
const OURS: readonly Name[] = ["functions", "reconciler", "certificates", "status page", "node API", "agent"];
const PORTS = [
  443,
  6443,
  53,
  8080,
  9090,
  9091,
  ...OURS.flatMap((name) => Object.values((PARTIES[name] as Party).ports ?? {})),
];

const https = PARTIES.functions.ports?.["https"] ?? 0;
const metrics = PARTIES.functions.ports?.["http-metrics"] ?? 0;
const nodeHttps = PARTIES["node API"].ports?.["https"] ?? 0;
const nodeMetrics = PARTIES["node API"].ports?.["http-metrics"] ?? 0;

/** All that may pass, by sender, receiver and TCP ports; "any" for all ports. */
const MAY: readonly (readonly [from: Name, to: Name, ports: readonly number[] | "any"])[] = [
  ...OURS.map((name) => [name, "API server", [443, 6443]] as const),
  ...(["functions", "reconciler", "agent"] as const).map((name) => [name, "DNS", [53]] as const),
  ["functions", "a zone's pod", "any"],
  ["reconciler", "a zone's pod", "any"],
  ["reconciler", "Prometheus", [9090, 9091]],
  ["reconciler", "Pushgateway", [9090, 9091]],
  ["API server", "functions", [https]],
  ["Prometheus", "functions", [metrics]],
  ["API server", "node API", [nodeHttps]],
  ["Prometheus", "node API", [nodeMetrics]],
  ["agent", "node API", [nodeHttps]],
];

describe("under the network policies", () => {
  for (const from of Object.keys(PARTIES) as Name[])
    for (const to of Object.keys(PARTIES) as Name[]) {
      if (from === to || (!OURS.includes(from) && !OURS.includes(to))) continue;
      const [, , ports = []] = MAY.find(([sender, receiver]) => sender === from && receiver === to) ?? [];
      it(`${from} reaches ${to} at ${ports === "any" ? "any port" : ports.join(" and ") || "no port"}`, () => {
        const open = new Set(PORTS.filter((port) => connects({ from: PARTIES[from], to: PARTIES[to], port })));
        assert.deepEqual(open, new Set(ports === "any" ? PORTS : ports));
      });
    }

  it("every pod of ours is under one policy, in both directions", () => {
    const templates = globSync("infra/manifests/**/*.yaml", { cwd: ROOT }).flatMap((file) =>
      collect(read(file), (object) => (object["spec"] as { containers?: object } | undefined)?.containers && object),
    );
    const labels = templates.map(({ metadata }) => (metadata as { labels: Labels }).labels);
    const selectors = POLICIES.map(({ podSelector }) => podSelector.matchLabels);
    const texts = (all: readonly Labels[]): Set<string> => new Set(all.map((one) => JSON.stringify(one)));
    assert.deepEqual(texts(labels), texts(selectors));
    for (const { policyTypes } of POLICIES) assert.deepEqual(policyTypes, ["Ingress", "Egress"]);
  });

  it("names are resolved over UDP, too, and nothing else is", () => {
    const over = (from: Name, to: Name, port: number): boolean =>
      connects({ from: PARTIES[from], to: PARTIES[to], port, protocol: "UDP" });
    for (const name of ["functions", "reconciler", "agent"] as const) assert.ok(over(name, "DNS", 53));
    for (const name of OURS) assert.ok(!over(name, "API server", 443) && !over(name, "internet", 53));
  });
});
