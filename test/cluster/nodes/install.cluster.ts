/**
 * Node updates installed beside the reconciler as docs/guides/nodes.md says: applied twice, under the rights of
 * the manifests, with a conversion, and removed.
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { composeNodeApi } from "../../../functions/nodes/compose.ts";
import { runServer } from "../../../functions/http/server.ts";
import { runJob } from "../../../infra/certs/act/run-job.ts";
import { systemClock } from "../../../infra/clock.ts";
import type { Secret } from "../../../infra/kubernetes/resources.ts";
import { collect } from "../../infra/manifests.ts";
import { freePort } from "../../loopback.ts";
import { buildKubeconfig } from "../stage/access.ts";
import { connectAdmin, remove } from "../stage/client.ts";
import { runKubectl } from "../stage/kubectl.ts";
import { type Manifest, renderManifests } from "../stage/manifests.ts";
import { openPlace } from "../stage/place.ts";
import { serverVariables } from "../stage/process.ts";
import { until } from "../stage/until.ts";

const FOLDER = "infra/manifests/node-updates";
const HOME = "brupop-bottlerocket-aws";
const CRD = "bottlerocketshadows.brupop.bottlerocket.aws";
const place = await openPlace();
after(place.close);
const { admin, namespace, folder, defer } = place;
const shadows = (version: string): string =>
  `/apis/brupop.bottlerocket.aws/${version}/namespaces/${HOME}/bottlerocketshadows`;

interface RulesReview {
  readonly status: {
    readonly resourceRules: readonly {
      readonly verbs: readonly string[];
      readonly apiGroups: readonly string[];
      readonly resources?: readonly string[];
    }[];
  };
}

/** What another test has left, but for what this one installs. */
let strange: ReadonlySet<string>;
/** In the order in which they are applied. */
let parts: readonly (readonly Manifest[])[];

async function kubectl(args: readonly string[], items?: readonly Manifest[]): Promise<string> {
  const { code, text } = await runKubectl(args, items && { apiVersion: "v1", kind: "List", items });
  assert.equal(code, 0, `kubectl ${args.join(" ")}: ${text}`);
  return text;
}

/** What there is of node updates in the cluster, by kind and name. */
async function readTraces(): Promise<string[]> {
  const kinds = "namespaces,clusterroles,clusterrolebindings,customresourcedefinitions";
  const names = (await kubectl(["get", kinds, "-o", "name"])).split("\n");
  return names.filter((name) => /brupop|node-?updates|nodeupdatepolic|node-api/.test(name));
}

/** A connection of a ServiceAccount of the installation. */
async function connectAs(account: string): Promise<string> {
  const path = join(folder, account);
  await writeFile(path, JSON.stringify(await buildKubeconfig(admin, HOME, account)), { mode: 0o600 });
  return path;
}

/** The variables that a manifest gives its container. */
const variablesOf = (kind: string): Record<string, string> =>
  Object.fromEntries(
    collect(
      parts.flat().filter((one) => one.kind === kind && one.metadata.namespace === HOME),
      ({ name, value }) => (typeof value === "string" ? ([String(name), value] as const) : undefined),
    ),
  );

/** Of this installation, and of one that an earlier run has left. */
async function removeAll(): Promise<void> {
  for (const items of parts.toReversed())
    await runKubectl(["delete", "--ignore-not-found", "-f", "-"], { apiVersion: "v1", kind: "List", items });
}

before(async () => {
  const all = await readTraces();
  strange = new Set(all.filter((name) => name.includes("-zw-") || name.includes("/zw-")));
  const setNamespace = (text: string): string => text.replace("namespace: zonewise", `namespace: ${namespace}`);
  parts = await Promise.all([
    renderManifests(namespace, { folder: `${FOLDER}/crds` }),
    renderManifests(namespace, { folder: "infra/manifests/reconciler", components: ["infra/manifests/namespace"] }),
    renderManifests(namespace, { folder: FOLDER, edit: { [`${FOLDER}/reconciler.yaml`]: setNamespace } }),
  ]);
  await removeAll();
  defer(removeAll);
});

describe("node updates, installed beside a reconciler,", () => {
  it("are applied, and a second time nothing changes", async () => {
    for (const items of parts) await kubectl(["apply", "-f", "-"], items);
    await kubectl([
      "wait",
      "--for=condition=Established",
      `crd/${CRD}`,
      "crd/nodeupdatepolicies.zonewise.dev",
      "--timeout=300s",
    ]);
    for (const items of parts) {
      const lines = (await kubectl(["apply", "-f", "-"], items)).split("\n");
      // Its selector is replaced as a whole: kubectl sends it each time, and nothing changes.
      assert.deepEqual(
        lines.filter(
          (line) => line !== "" && !line.endsWith(" unchanged") && !line.startsWith("poddisruptionbudget.policy/"),
        ),
        [],
      );
      // A status that changes between its two reads is a difference, too.
      await until("kubectl diff finds none", async () => (await kubectl(["diff", "-f", "-"], items)) !== undefined);
    }
    await kubectl(["apply", "--dry-run=server", "-f", "examples/node-update-policy.yaml"]);
  });

  it("give the agents no right to write, whatever the resource, nor to read Secrets", async () => {
    const agent = await connectAdmin(await connectAs("brupop-agent-service-account"));
    const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: { namespace: HOME } };
    const { status } = await agent.call<RulesReview>(
      "POST",
      "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
      review,
    );
    agent.close();
    const writing = status.resourceRules.filter(({ verbs }) =>
      verbs.some((verb) => !["get", "list", "watch"].includes(verb)),
    );
    // What every user may: ask who he is, and what he may.
    assert.deepEqual(
      new Set(writing.flatMap(({ apiGroups }) => apiGroups)),
      new Set(["authorization.k8s.io", "authentication.k8s.io"]),
    );
    assert.ok(!status.resourceRules.some(({ resources = [] }) => resources.some((one) => /secrets|\*/.test(one))));
  });

  it("have pods that restricted admits, but for the agents, which their namespace admits", async () => {
    const restricted = `${namespace}-restricted`;
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await admin.call("POST", "/api/v1/namespaces", { metadata: { name: restricted, labels } });
    defer(() => remove(admin, `/api/v1/namespaces/${restricted}`));
    const dryRun = (where: string, spec: object): Promise<string> =>
      admin
        .call("POST", `/api/v1/namespaces/${where}/pods?dryRun=All`, {
          metadata: { name: "a-pod" },
          spec: { ...spec, serviceAccountName: "default" },
        })
        .then(() => "admitted", String);
    for (const where of [restricted, HOME])
      await until(
        "its ServiceAccount",
        async () => !!(await admin.call("GET", `/api/v1/namespaces/${where}/serviceaccounts/default`)),
      );
    for (const manifest of parts[2] ?? [])
      for (const { spec } of collect(
        manifest,
        ({ template }) => template as { spec?: { containers?: object } } | undefined,
      )) {
        if (!spec?.containers) continue;
        if (manifest.kind === "DaemonSet") assert.match(await dryRun(restricted, spec), /violates PodSecurity/);
        assert.equal(
          await dryRun(manifest.kind === "DaemonSet" ? HOME : restricted, spec),
          "admitted",
          manifest.metadata.name,
        );
      }
  });

  it("convert a v1 object by the API server, once the certificate job has run under its own rights", async () => {
    const env = { ...variablesOf("CronJob"), KUBERNETES_NAMESPACE: HOME, LOG_LEVEL: "error" };
    const stop = new AbortController();
    assert.equal(
      await runJob(
        { ...env, KUBECONFIG: await connectAs("zonewise-node-api-certificates") },
        {
          stop: stop.signal,
          publishes: true,
        },
      ),
      0,
    );
    const { data } = await admin.call<Secret>(
      "GET",
      `/api/v1/namespaces/${HOME}/secrets/zonewise-node-api-certificate`,
    );
    const ca = await admin.call<{ data: Record<string, string> }>(
      "GET",
      `/api/v1/namespaces/${HOME}/configmaps/zonewise-node-api-ca`,
    );
    assert.equal(ca.data["ca.crt"], Buffer.from(data?.["ca.crt"] ?? "", "base64").toString());
    for (const file of ["tls.crt", "tls.key"])
      await writeFile(join(folder, file), Buffer.from(data?.[file] ?? "", "base64"), { mode: 0o600 });
    const [tlsPort, port] = [await freePort(), await freePort()];
    const api = await composeNodeApi(
      {
        ...variablesOf("Deployment"),
        ...serverVariables({ namespace: HOME, folder, tlsPort, port }),
        KUBECONFIG: await connectAs("brupop-apiserver-service-account"),
      },
      systemClock,
    );
    const serving = runServer(api, stop.signal);
    defer(async () => (stop.abort(), await serving));
    // What kube-proxy does where there are containers.
    const external = {
      type: "ExternalName",
      externalName: "localhost",
      clusterIP: null,
      clusterIPs: null,
      selector: null,
    };
    await admin.call("PATCH", `/api/v1/namespaces/${HOME}/services/brupop-apiserver`, { spec: external });
    const clientConfig = { service: { port: tlsPort } };
    await admin.call("PATCH", `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${CRD}`, {
      spec: { conversion: { webhook: { clientConfig } } },
    });
    const old = {
      apiVersion: "brupop.bottlerocket.aws/v1",
      kind: "BottlerocketShadow",
      metadata: { name: "brs-old", namespace: HOME, labels: { team: "x" } },
      spec: { state: "PerformedUpdate" },
    };
    await until("converted", async () => !!(await admin.call("POST", `${shadows("v1")}?dryRun=All`, old)));
    await admin.call("POST", shadows("v1"), old);
    const stored = await admin.call<typeof old>("GET", `${shadows("v2")}/brs-old`);
    assert.deepEqual([stored.spec.state, stored.metadata.labels], ["StagedAndPerformedUpdate", { team: "x" }]);
    const status = {
      current_version: "1.0.0",
      target_version: "1.1.0",
      current_state: "ErrorReset",
      crash_count: 3,
      state_transition_failure_timestamp: "2026-01-01T00:00:00Z",
      boot_id: "b",
    };
    await admin.call("PATCH", `${shadows("v2")}/brs-old/status`, { status });
    const { items } = await admin.call<{ items: readonly (typeof old & { status: object })[] }>("GET", shadows("v1"));
    assert.deepEqual(
      items.map((one) => [one.spec.state, one.status]),
      [["PerformedUpdate", { current_version: "1.0.0", target_version: "1.1.0", current_state: "MonitoringUpdate" }]],
    );
    await admin.call("PATCH", `${shadows("v1")}/brs-old`, { spec: { version: "1.1.0" } });
    assert.partialDeepStrictEqual(await admin.call("GET", `${shadows("v2")}/brs-old`), {
      spec: { version: "1.1.0" },
      status,
    });
    assert.match(
      await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(),
      /^brupop_hosts_state\{state="Idle"\} 0$/m,
    );
  });

  it("leave nothing behind when they are removed", async () => {
    for (const items of [parts[2] ?? [], parts[0] ?? []]) await kubectl(["delete", "-f", "-"], items);
    assert.deepEqual(
      (await readTraces()).filter((name) => !strange.has(name)),
      [],
    );
    assert.doesNotMatch(
      await kubectl(["get", "configmaps,roles,rolebindings", "-n", namespace, "-o", "name"]),
      /node-?updates/,
    );
  });
});
