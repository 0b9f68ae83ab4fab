/** What the API server allows our ServiceAccounts, and what it must not, as it answers SubjectAccessReviews. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { applyRbac } from "../stage/access.ts";
import { createManifest, deleteManifest, renderManifests, WITH_STATUS_PAGE } from "../stage/manifests.ts";
import { openPlace } from "../stage/place.ts";
import { until } from "../stage/until.ts";

const place = await openPlace();
after(place.close);
const { admin, namespace } = place;
const SECRET = "rollout-operator-self-signed-certificate";
const BUDGETS = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";

/**
 * `verb resource[.group][/subresource] [namespace/]name`; a namespace of "" is ours, and no namespace at all is the
 * cluster.
 */
type Request = string;

const ALLOWED: Readonly<Record<string, readonly Request[]>> = {
  reconciler: [
    "delete pods /p",
    "get secrets /zonewise-prometheus",
    "create pods/eviction /p",
    "patch statefulsets.apps /s",
    `get secrets /${SECRET}`,
    "update leases.coordination.k8s.io /l",
  ],
  functions: ["get pods /p", `update ${BUDGETS}/status /b`, "update leases.coordination.k8s.io /l"],
  status: ["list pods /", "list rolloutgroups.zonewise.dev /", "get leases.coordination.k8s.io /zonewise-reconciler"],
  certificates: [
    `update secrets /${SECRET}`,
    `patch mutatingwebhookconfigurations.admissionregistration.k8s.io pod-eviction-${namespace}`,
    `patch validatingwebhookconfigurations.admissionregistration.k8s.io no-downscale-${namespace}`,
  ],
};

/** Nobody of ours may do these, whatever the rules above. */
const NEVER: readonly Request[] = [
  "get secrets /another",
  "list secrets /",
  `delete secrets /${SECRET}`,
  `get secrets other/${SECRET}`,
  "create secrets other/",
  "get pods other/p",
  "delete pods other/p",
  "patch statefulsets.apps other/s",
  "get leases.coordination.k8s.io other/l",
  "update leases.coordination.k8s.io kube-system/kube-scheduler",
  "create pods /",
  "create pods/exec /p",
  "create pods/attach /p",
  "create pods/portforward /p",
  "create pods/ephemeralcontainers /p",
  "create pods/eviction other/p",
  "get pods/log /p",
  "delete statefulsets.apps /s",
  "create deployments.apps /",
  "create jobs.batch /",
  "create serviceaccounts/token /zonewise-reconciler",
  "impersonate serviceaccounts /default",
  "create rolebindings.rbac.authorization.k8s.io /",
  "escalate roles.rbac.authorization.k8s.io /zonewise-reconciler",
  "bind clusterroles.rbac.authorization.k8s.io cluster-admin",
  "patch mutatingwebhookconfigurations.admissionregistration.k8s.io another",
  "patch validatingwebhookconfigurations.admissionregistration.k8s.io no-downscale-zonewise",
  "create mutatingwebhookconfigurations.admissionregistration.k8s.io",
  "delete validatingwebhookconfigurations.admissionregistration.k8s.io",
  "delete validatingadmissionpolicies.admissionregistration.k8s.io",
  "get nodes node-1",
  "proxy nodes node-1",
  "list namespaces",
];

/** What one of ours may do and another may not. */
const NOT_ITS_OWN: Readonly<Record<string, readonly Request[]>> = {
  reconciler: ["create configmaps /", "delete leases.coordination.k8s.io /l", "list pods other/"],
  functions: [
    "delete pods /p",
    "create pods/eviction /p",
    "patch statefulsets.apps /s",
    `get secrets /${SECRET}`,
    "list mutatingwebhookconfigurations.admissionregistration.k8s.io",
  ],
  status: [
    "get leases.coordination.k8s.io /l",
    "update leases.coordination.k8s.io /zonewise-reconciler",
    "delete pods /p",
    "create pods/eviction /p",
    "patch statefulsets.apps /s",
    `update ${BUDGETS}/status /b`,
    `get secrets /${SECRET}`,
    "create events /",
  ],
  certificates: [
    "get pods /p",
    "create pods/eviction /p",
    "get statefulsets.apps /s",
    "get leases.coordination.k8s.io /l",
    `get ${BUDGETS} /b`,
    "create events /",
  ],
};

function readRequest(request: Request): object {
  const [verb, kind = "", object] = request.split(" ");
  const [, resource, group = "", subresource = ""] = /^([^./]+)(?:\.([^/]+))?(?:\/(.+))?$/.exec(kind) ?? [];
  const [name, where] = (object ?? "").split("/").toReversed();
  return { verb, group, resource, subresource, name, ...(where !== undefined && { namespace: where || namespace }) };
}

async function isAllowed(account: string, request: Request): Promise<boolean> {
  const own = `system:serviceaccounts:${namespace}`;
  const user = `system:serviceaccount:${namespace}:zonewise-${account}`;
  const groups = ["system:authenticated", "system:serviceaccounts", own];
  const { status } = await admin.call<{ status: { allowed: boolean } }>(
    "POST",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    {
      spec: { user, groups, resourceAttributes: readRequest(request) },
    },
  );
  return status.allowed;
}

before(async () => {
  const kinds = new Set(["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]);
  const manifests = await renderManifests(namespace, WITH_STATUS_PAGE);
  for (const manifest of manifests.filter(({ kind }) => kinds.has(kind))) {
    place.defer(() => deleteManifest(admin, manifest));
    await createManifest(admin, manifest);
  }
  await applyRbac(admin, namespace, "prometheus-secrets");
  // An API server knows a new binding after a moment.
  for (const [account, requests] of Object.entries(ALLOWED))
    for (const request of requests) await until(`${account} may ${request}`, () => isAllowed(account, request));
});

for (const account of ["reconciler", "functions", "certificates", "status"])
  describe(`zonewise-${account}`, () => {
    for (const request of ALLOWED[account] ?? [])
      it(`may ${request}`, async () => assert.equal(await isAllowed(account, request), true));
    for (const request of [...NEVER, ...(NOT_ITS_OWN[account] ?? [])])
      it(`may not ${request}`, async () => assert.equal(await isAllowed(account, request), false));
  });
