/** The commands of the kubectl test, and their manifests. */
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
export const FILES: Readonly<Record<string, string>> = {
  "web.yaml": MANIFEST,
  "budget.yaml": BUDGET,
  "crd.yaml": DEFINITION,
  "widget.yaml": widget("{size: 3}"),
  "small.yaml": widget("{size: 0}"),
};

/** The arguments of `kubectl -n demo`, and the expected output; a command must fail if `fails` is given. */
export interface Step {
  readonly type: string;
  readonly shows?: RegExp;
  readonly fails?: RegExp;
}

export const STEPS: readonly Step[] = [
  { type: "create namespace demo", shows: /namespace\/demo created/ },
  { type: "apply -f web.yaml", shows: /statefulset.apps\/web created/ },
  { type: "apply -f web.yaml", shows: /statefulset.apps\/web unchanged/ },
  { type: "create -f web.yaml", fails: /AlreadyExists/ },
  { type: "rollout status sts/web --timeout=20s", shows: /roll out complete/ },
  { type: "get sts", shows: /NAME +READY +AGE\nweb +2\/2 +\d+s\n/ },
  { type: "get sts -o wide", shows: /NAME +READY +AGE +CONTAINERS +IMAGES\nweb +2\/2 +\d+s +main +app:1\n/ },
  { type: "get pods", shows: /NAME +READY +STATUS +RESTARTS +AGE\nweb-0 +1\/1 +Running +0 +\d+s\nweb-1 / },
  {
    type: "get pods -o wide",
    shows: /IP +NODE +NOMINATED NODE +READINESS GATES\nweb-0 .* 10\.[\d.]+ +node-\d +<none> +<none>\n/,
  },
  { type: "get nodes", shows: /node-1 +Ready +\d+s/ },
  { type: "get namespaces", shows: /demo +\d+s/ },
  { type: "get pods -l app=web --field-selector=status.phase=Running -o name", shows: /^pod\/web-0\npod\/web-1\n$/ },
  { type: "get pod none", fails: /\(NotFound\): pods "none" not found/ },
  { type: "get nones", fails: /the server doesn't have a resource type "nones"/ },
  { type: "describe sts web", shows: /Pods Status: +2 Running[^]*Noted +\d+s +tester +All is well/ },
  { type: "describe pod web-0", shows: /Controlled By: +StatefulSet\/web[^]*Ready +True/ },
  { type: "events", shows: /Noted +StatefulSet\/web/ },
  {
    type: "get events",
    shows: /LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n\d+s +Normal +Noted +statefulset\/web +All is well/,
  },
  { type: "label pod web-0 a=b", shows: /pod\/web-0 labeled/ },
  { type: "annotate sts web c=d", shows: /statefulset.apps\/web annotated/ },
  {
    type: `patch sts web -p {"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"B","value":"2"}]}]}}}}`,
    shows: /patched/,
  },
  { type: "get sts web -o jsonpath={.spec.template.spec.containers[0].env[*].name}", shows: /^B A$/ },
  { type: `patch sts web --type merge -p {"metadata":{"labels":{"x":"y"}}}`, shows: /patched/ },
  { type: `patch sts web --type json -p [{"op":"add","path":"/metadata/labels/z","value":"1"}]`, shows: /patched/ },
  {
    type: `patch sts web --type json -p [{"op":"test","path":"/metadata/labels/z","value":"2"}]`,
    fails: /server rejected our request/,
  },
  {
    type: `patch sts web -p {"spec":{"serviceName":"other"}}`,
    fails: /updates to statefulset spec for fields other than/,
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
  { type: "delete pod web-0", shows: /pod "web-0" deleted/ },
  { type: "apply -f crd.yaml", shows: /created/ },
  { type: "wait --for=condition=Established crd/widgets.example.com --timeout=10s", shows: /condition met/ },
  { type: "create -f small.yaml", fails: /spec.size in body should be greater than or equal to 1/ },
  { type: "apply -f widget.yaml", shows: /widget.example.com\/one created/ },
  { type: "get widgets", shows: /NAME +SIZE\none +3\n/ },
  { type: "auth can-i delete pods", shows: /^yes\n$/ },
  { type: "auth can-i --list", shows: /\*\.\* +\[\] +\[\] +\[\*\]/ },
  { type: "auth whoami", shows: /Username +admin/ },
  { type: "set image sts/web main=registry.invalid/app:2", shows: /image updated/ },
  { type: "delete pod web-1", shows: /deleted/ },
  {
    type: "wait --for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff pod/web-1 --timeout=20s",
    shows: /condition met/,
  },
  { type: "get pods", shows: /web-1 +0\/1 +(?:ErrImagePull|ImagePullBackOff) / },
  { type: "create configmap c --from-literal=a=b", shows: /configmap\/c created/ },
  { type: "apply -f web.yaml --dry-run=server", shows: /server dry run/ },
  { type: "delete sts web", shows: /deleted/ },
  { type: "wait --for=delete pod -l app=web --timeout=20s", shows: /condition met|no matching resources|^$/ },
  { type: "delete namespace demo", shows: /deleted/ },
  { type: "get namespace demo", fails: /NotFound/ },
];
