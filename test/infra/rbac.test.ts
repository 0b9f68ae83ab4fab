import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { parseAllDocuments } from "yaml";
import { VARIABLES } from "../../infra/config/variables.ts";
import { collect, find, HOOKS, type Manifest, read, ROOT } from "./manifests.ts";
import { rightsOf, rulesBoundTo } from "./rights.ts";

interface Role {
  readonly kind: string;
  readonly rules: readonly { readonly resourceNames?: readonly string[] }[];
}

function rulesOf(path: string, kind: string): Role["rules"] {
  const text = readFileSync(join(import.meta.dirname, "../../infra/manifests", path), "utf8");
  const role = parseAllDocuments(text)
    .map((document) => document.toJS() as Role)
    .find((manifest) => manifest.kind === kind);
  assert.ok(role, `${path} has no ${kind}`);
  return role.rules;
}

it("an installation for all namespaces may do there what one for a single namespace may do in its own, and nothing else", () => {
  const own = rulesOf("reconciler/rbac.yaml", "Role");
  assert.deepEqual(rulesOf("all-namespaces/cluster-rbac.yaml", "ClusterRole"), own);
});

it("cluster-wide writers of Leases are restricted to names with our prefixes", () => {
  const binding = parseAllDocuments(
    readFileSync(join(import.meta.dirname, "../../infra/manifests/all-namespaces/cluster-rbac.yaml"), "utf8"),
  )
    .map((document) => document.toJS() as { kind: string; subjects: { namespace: string; name: string }[] })
    .find(({ kind }) => kind === "ClusterRoleBinding");
  const [subject] = binding?.subjects ?? [];
  const file = "all-namespaces/lease-policy.yaml";
  const policy = find(file, "ValidatingAdmissionPolicy", "zonewise-reconciler-leases")["spec"];
  assert.partialDeepStrictEqual(policy, {
    failurePolicy: "Fail",
    matchConstraints: { resourceRules: [{ operations: ["CREATE", "UPDATE", "DELETE"], resources: ["leases"] }] },
    matchConditions: [
      { expression: `request.userInfo.username == 'system:serviceaccount:${subject?.namespace}:${subject?.name}'` },
    ],
    validations: [{ expression: "request.name.startsWith('zonewise-')" }],
  });
  assert.deepEqual(find(file, "ValidatingAdmissionPolicyBinding", "zonewise-reconciler-leases")["spec"], {
    policyName: "zonewise-reconciler-leases",
    validationActions: ["Deny"],
  });
  assert.ok(VARIABLES.LEASE_NAME.default.startsWith("zonewise-"));
});

it("every cluster-wide right of the certificates is named for the namespace that is said in one place", () => {
  const kinds = new Set(["ClusterRole", "ClusterRoleBinding"]);
  const selected = collect(read("infra/manifests/namespace/kustomization.yaml"), ({ kind, name }) =>
    kinds.has(String(kind)) ? `${String(kind)} ${String(name)}` : undefined,
  );
  const clusterWide = read("infra/manifests/certificates/rbac.yaml").filter(({ kind = "" }) => kinds.has(kind));
  assert.deepEqual(new Set(selected), new Set(clusterWide.map(({ kind, metadata }) => `${kind} ${metadata?.name}`)));
});

it("the right to read Secrets in another namespace goes to the reconciler of the namespace that is said in one place", () => {
  const patches = collect(read("infra/manifests/prometheus-secrets/kustomization.yaml"), ({ patch }) => patch);
  const [{ namespace } = assert.fail()] = read("infra/manifests/namespace/kustomization.yaml") as unknown as {
    namespace: string;
  }[];
  assert.deepEqual(
    patches.map(String).flatMap((patch) => JSON.parse(patch) as unknown),
    [{ op: "add", path: "/subjects/0/namespace", value: namespace }],
  );
});

interface Kustomization {
  readonly kind?: string;
  readonly resources?: readonly string[];
  readonly patches?: readonly { readonly patch: string }[];
}

/** The folders of kustomizations that a folder is made of, itself included, components left out. */
function partsOf(folder: string): string[] {
  const [{ resources = [] } = {}] = read(join(folder, "kustomization.yaml")) as Kustomization[];
  const others = resources
    .map((name) => join(folder, name))
    .filter((path) => existsSync(join(ROOT, path, "kustomization.yaml")));
  return [folder, ...others.flatMap(partsOf)];
}

/** What the kustomization of a folder is made of, before its patches. */
const builtFrom = (folder: string): Manifest[] =>
  partsOf(folder).flatMap((part) => {
    const [{ resources = [] } = {}] = read(join(part, "kustomization.yaml")) as Kustomization[];
    return resources.filter((name) => name.endsWith(".yaml")).flatMap((name) => read(join(part, name)));
  });

describe("every ServiceAccount that a binding names has a namespace, which the API server demands:", () => {
  const folders = globSync("{infra/manifests,knative}/**/kustomization.yaml", { cwd: ROOT }).map((path) =>
    dirname(path),
  );
  const parts = new Set(folders.flatMap((folder) => partsOf(folder).slice(1)));
  for (const folder of folders.filter((one) => !parts.has(one)).toSorted())
    it(`said in ${folder}, or filled in by kustomize, which knows the ServiceAccounts of the same build alone`, () => {
      const [{ patches = [] } = {}] = read(join(folder, "kustomization.yaml")) as Kustomization[];
      if (patches.some(({ patch }) => patch.includes("/subjects/0/namespace"))) return;
      const all = builtFrom(folder);
      const accounts = new Set(
        all.filter(({ kind }) => kind === "ServiceAccount").map(({ metadata }) => metadata?.name),
      );
      const subjects = all.flatMap(
        ({ subjects: found = [] }) => found as { kind: string; name: string; namespace?: string }[],
      );
      const without = subjects.filter(
        ({ kind, name, namespace }) => kind === "ServiceAccount" && namespace === undefined && !accounts.has(name),
      );
      assert.deepEqual(without, []);
    });

  it("the namespace that is said in one place, where another build has the ServiceAccount", () => {
    const selected = collect(read("infra/manifests/namespace/kustomization.yaml"), ({ kind, name }) =>
      kind === "RoleBinding" ? name : undefined,
    );
    assert.deepEqual(selected, ["zonewise-prometheus-secrets"]);
  });
});

const ACCOUNTS = [
  "zonewise-reconciler",
  "zonewise-functions",
  "zonewise-certificates",
  "brupop-agent-service-account",
  "brupop-apiserver-service-account",
  "zonewise-node-api-certificates",
  "zonewise-status",
];
const CONFIGURATIONS = [...HOOKS.map(({ name }) => name), "pod-deletion"].map((name) => `${name}-zonewise`);

it("the agents have no right to write", () => {
  const rights = rulesBoundTo("brupop-agent-service-account").flatMap(rightsOf);
  assert.deepEqual(rights.toSorted(), ["get bottlerocketshadows", "get nodes", "watch bottlerocketshadows"]);
});

for (const account of ACCOUNTS)
  describe(account, () => {
    it("reaches Secrets and ConfigMaps by their names only; to create one has no name yet", () => {
      const unnamed = rulesBoundTo(account).filter(({ resourceNames }) => resourceNames === undefined);
      const rights = unnamed.flatMap(rightsOf).filter((right) => /secrets|configmaps/.test(right));
      assert.deepEqual(
        rights.filter((right) => !right.startsWith("create ")),
        [],
      );
    });

    it("changes the webhook configurations of the manifests, by their names, and no others", () => {
      const rules = rulesBoundTo(account).filter((rule) =>
        rightsOf(rule).some((right) => /^patch .*webhookconfigurations/.test(right)),
      );
      for (const { resourceNames = [] } of rules) assert.deepEqual(resourceNames.toSorted(), CONFIGURATIONS.toSorted());
    });

    it("names each verb and each resource: no wildcard", () =>
      assert.doesNotMatch(JSON.stringify(rulesBoundTo(account)), /\*/));
  });

it("the status page writes nothing, and reads no Secret and no Lease but the reconciler's", () => {
  const rules = rulesBoundTo("zonewise-status");
  assert.deepEqual(new Set(rules.flatMap(({ verbs }) => verbs)), new Set(["get", "list"]));
  const leases = rules.filter(({ resources }) => resources.includes("leases"));
  assert.deepEqual(
    leases.map(({ resourceNames }) => resourceNames),
    [[VARIABLES.LEASE_NAME.default]],
  );
});
