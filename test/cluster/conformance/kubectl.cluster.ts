/**
 * Real kubectl (from KUBECTL, else from PATH) on the embedded cluster: the commands that the README and users
 * rely on.
 */
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startEmulator } from "../../emulator/index.ts";
import type { Emulator } from "../../emulator/index.ts";
import type { KubeObject } from "../../emulator/objects.ts";

const KUBECTL = process.env["KUBECTL"] || "kubectl";
const isMissing = spawnSync(KUBECTL, ["version", "--client"]).status !== 0;
const skip = isMissing && !process.env["KUBECTL"] ? "there is no kubectl in PATH, and KUBECTL names none" : false;

const MANIFEST = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 2
  serviceName: web
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:1", env: [{name: A, value: "1"}]}]}
`;

const BUDGET = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
`;

const DEFINITION = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 1}}}}
`;

const widget = (spec: string): string => `
apiVersion: example.com/v1
kind: Widget
metadata: {name: one}
spec: ${spec}
`;

/** Manifests by file name. */
const FILES: Readonly<Record<string, string>> = {
  "web.yaml": MANIFEST,
  "budget.yaml": BUDGET,
  "crd.yaml": DEFINITION,
  "widget.yaml": widget("{size: 3}"),
  "small.yaml": widget("{size: 0}"),
};

/** The arguments of `kubectl -n demo`, and the expected output; a command must fail if `fails` is given. */
interface Step {
  readonly type: string;
  readonly shows?: RegExp;
  readonly fails?: RegExp;
}

const STEPS: readonly Step[] = [
  { type: "create namespace demo", shows: /namespace\/demo created/ },
  { type: "apply -f web.yaml", shows: /statefulset.apps\/web created/ },
  { type: "apply -f web.yaml", shows: /statefulset.apps\/web unchanged/ },
  { type: "rollout status sts/web --timeout=20s", shows: /roll out complete/ },
  { type: "get sts", shows: /NAME +READY +AGE\nweb +2\/2 +\d+s\n/ },
  { type: "get pods", shows: /NAME +READY +STATUS +RESTARTS +AGE\nweb-0 +1\/1 +Running +0 +\d+s\nweb-1 / },
  {
    type: "get pods -o wide",
    shows: /IP +NODE +NOMINATED NODE +READINESS GATES\nweb-0 .* 10\.[\d.]+ +node-\d +<none> +<none>\n/,
  },
  { type: "get pods -l app=web --field-selector=status.phase=Running -o name", shows: /^pod\/web-0\npod\/web-1\n$/ },
  { type: "get nones", fails: /the server doesn't have a resource type "nones"/ },
  { type: "describe sts web", shows: /Pods Status: +2 Running[^]*Noted +\d+s +tester +All is well/ },
  { type: "describe pod web-0", shows: /Controlled By: +StatefulSet\/web[^]*Ready +True/ },
  { type: "events", shows: /Noted +StatefulSet\/web/ },
  {
    type: `patch sts web -p {"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"B","value":"2"}]}]}}}}`,
    shows: /patched/,
  },
  { type: "get sts web -o jsonpath={.spec.template.spec.containers[0].env[*].name}", shows: /^B A$/ },
  {
    type: `patch sts web --type json -p [{"op":"test","path":"/metadata/name","value":"x"}]`,
    fails: /server rejected our request/,
  },
  { type: "set image sts/web main=app:2", shows: /image updated/ },
  { type: "rollout status sts/web --timeout=20s", shows: /roll out complete/ },
  { type: "scale sts web --replicas=3", shows: /scaled/ },
  { type: "wait --for=jsonpath={.status.readyReplicas}=3 sts/web --timeout=20s", shows: /condition met/ },
  { type: "wait --for=condition=Ready pod/web-2 --timeout=20s", shows: /condition met/ },
  { type: "apply -f budget.yaml", shows: /created/ },
  { type: "wait --for=jsonpath={.status.observedGeneration}=1 pdb/web --timeout=10s", shows: /condition met/ },
  { type: "cordon node-1", shows: /node\/node-1 cordoned/ },
  { type: "cordon node-2", shows: /cordoned/ },
  { type: "cordon node-3", shows: /cordoned/ },
  { type: "get nodes", shows: /node-3 +Ready,SchedulingDisabled/ },
  {
    type: "drain node-1 node-2 node-3 --timeout=2s",
    fails: /Cannot evict pod as it would violate the pod's disruption budget/,
  },
  { type: "delete pdb web", shows: /deleted/ },
  { type: "drain node-1 node-2 node-3 --timeout=20s", shows: /node\/node-3 drained/ },
  { type: "uncordon node-1", shows: /node\/node-1 uncordoned/ },
  { type: "wait --for=condition=Ready pod/web-0 --timeout=20s", shows: /condition met/ },
  { type: "apply -f crd.yaml", shows: /created/ },
  { type: "wait --for=condition=Established crd/widgets.example.com --timeout=10s", shows: /condition met/ },
  { type: "create -f small.yaml", fails: /spec.size in body should be greater than or equal to 1/ },
  { type: "apply -f widget.yaml", shows: /widget.example.com\/one created/ },
  { type: "get widgets", shows: /NAME +SIZE\none +3\n/ },
  { type: "auth can-i --list", shows: /\*\.\* +\[\] +\[\] +\[\*\]/ },
  { type: "apply -f web.yaml --dry-run=server", shows: /server dry run/ },
  { type: "delete sts web", shows: /deleted/ },
  { type: "wait --for=delete pod -l app=web --timeout=20s", shows: /condition met|no matching resources|^$/ },
  { type: "delete namespace demo", shows: /deleted/ },
];

let emulator: Emulator;
let folder: string;

before(async () => {
  if (skip) return;
  emulator = await startEmulator();
  folder = await mkdtemp(join(tmpdir(), "kubectl-"));
  await emulator.writeKubeconfig(join(folder, "kubeconfig"));
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text);
  emulator.store.subscribe(({ type, resource, object }) => {
    if (type === "ADDED" && resource === "statefulsets.apps") setImmediate(createEvent, object);
  });
});

after(async () => {
  if (skip) return;
  await emulator.stop();
  await rm(folder, { recursive: true });
});

/** Creates an Event for the object, as Zonewise does. */
function createEvent({ apiVersion, kind, metadata: { name, namespace = "", uid } }: KubeObject): void {
  const time = new Date().toISOString();
  emulator.store.create("events", {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${name}.1`, namespace },
    involvedObject: { apiVersion, kind, name, namespace, uid },
    reason: "Noted",
    message: "All is well",
    source: { component: "tester" },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
    type: "Normal",
  });
}

/** HOME is the test's folder: kubectl caches discovery there. */
const options = (): { cwd: string; env: NodeJS.ProcessEnv } => ({
  cwd: folder,
  env: { ...process.env, HOME: folder, KUBECONFIG: join(folder, "kubeconfig") },
});

function kubectl(type: string): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(KUBECTL, ["-n", "demo", ...type.split(" ")], options(), (error, stdout, stderr) => {
      resolve({ code: error ? 1 : 0, output: `${stdout}${stderr}` });
    });
  });
}

test("kubectl works with the embedded cluster", { skip, timeout: 600_000 }, async (t) => {
  for (const { type, shows, fails } of STEPS)
    await t.test(`kubectl ${type.slice(0, 100)}`, async () => {
      const { code, output } = await kubectl(type);
      assert.equal(code, fails ? 1 : 0, output);
      assert.match(output, fails ?? shows ?? /./);
    });
});

test("kubectl get -w shows a pod from its creation to its deletion", { skip, timeout: 300_000 }, async () => {
  await kubectl("create namespace watched");
  await kubectl("-n watched run first --image=app:1");
  const watch = spawn(KUBECTL, ["-n", "watched", "get", "pods", "-w"], options());
  let output = "";
  const untilOutput = (pattern: RegExp): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => void (pattern.test(output) && resolve());
      watch.stdout.on("data", check);
      check();
    });
  watch.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await untilOutput(/^NAME +READY +STATUS +RESTARTS +AGE\nfirst /);
  await kubectl("-n watched run one --image=app:1");
  await untilOutput(/\none +0\/1 +Pending[^]*\none +1\/1 +Running +0 +\d+s\n/);
  await kubectl("-n watched delete pod one --wait=false");
  await untilOutput(/\none +1\/1 +Terminating +0 +\d+s\n/);
  watch.kill();
});
