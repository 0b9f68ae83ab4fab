/** What scaling decides, and how pods are prepared. */
import type { Mutation } from "../mutation.ts";

const MIN_TIME = { file: "reconciler/scaling/min-time.ts", tests: ["test/reconciler/scaling/min-time.test.ts"] };
const PASS = { file: "reconciler/scaler/scale-pass.ts", tests: ["test/reconciler/scale-races.test.ts"] };
const STEADY = { file: "reconciler/scaling/steady.ts", tests: ["test/reconciler/scaling/steady.test.ts"] };
const DELAYED = {
  file: "reconciler/scaling/delayed.ts",
  tests: ["test/reconciler/scaling/delayed.test.ts", "test/reconciler/scaling/pod-ages.test.ts"],
};

export const SCALING_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "the time between zones must be over, not just reached",
    ...MIN_TIME,
    find: "if (snapshot.now - last.at > ms) return undefined;",
    replacement: "if (snapshot.now - last.at >= ms) return undefined;",
  },
  {
    breaks: "a downscale that cannot be read holds the other zones",
    ...MIN_TIME,
    find: "if (at === undefined) {",
    replacement: "if (at === undefined) continue;\n      if (Number.isNaN(at)) {",
  },
  {
    breaks: "a zone tracker that cannot be read holds every zone",
    ...MIN_TIME,
    find: "if (!tracked) return hold(",
    replacement: "if (!tracked) return undefined;\n  if (tracked.size < 0) return hold(",
  },
  {
    breaks: "a downscale is recorded with the replicas",
    file: "reconciler/scaling/leader.ts",
    find: "const record = replicas < zone.replicas && zones",
    replacement: "const record = replicas < 0 && zones",
    tests: ["test/reconciler/scaling/follower.test.ts", "test/reconciler/scaling/leader.test.ts"],
  },
  {
    breaks: "nothing else is done for a group once a change of replicas may have taken effect",
    ...PASS,
    find: "if (!isRefused(error)) throw error;",
    replacement: "if (!(error instanceof RolloutError)) throw error;",
  },
  {
    breaks: "a write that failed with a server error may have taken effect",
    file: "infra/errors.ts",
    find: 'ServerError: { retryable: true, effect: "unknown" }',
    replacement: 'ServerError: { retryable: true, effect: "none" }',
    tests: ["test/infra/errors.test.ts", "test/reconciler/scaling/follower.test.ts"],
  },
  {
    breaks: "only an API server that could not ask a webhook is known to have written nothing",
    file: "infra/kubernetes/api-error.ts",
    find: `status.message?.startsWith('Internal error occurred: failed calling webhook "')`,
    replacement: `status.message?.includes('failed calling webhook "')`,
    tests: ["test/infra/cluster-errors.test.ts"],
  },
  {
    breaks: "a zone that has changed since it was read is not scaled down",
    ...PASS,
    find: "uid === zone.uid && resourceVersion === zone.resourceVersion",
    replacement: "uid === zone.uid",
  },
  {
    breaks: "everything is looked at again before a zone is scaled down",
    ...PASS,
    find: "replicas < zone.replicas && zone.scaling.forced === undefined ? await",
    replacement: "replicas < 0 && zone.scaling.forced === undefined ? await",
  },
  {
    breaks: "a zone is not scaled down while another loses pods",
    ...PASS,
    tests: ["test/reconciler/scaling/properties.test.ts"],
    find: "return othersSteady(same, await gatherGroup(cluster, zones, freshness)) ?? (",
    replacement: "return (",
  },
  {
    breaks: "a zone is not scaled down while an admitted downscale of another may still be stored",
    ...PASS,
    find: " ?? (await othersAdmitted(same, zones, scaler));",
    replacement: ";",
  },
  {
    breaks: "a zone is not scaled down while a pod of another has yet to come back",
    ...STEADY,
    find: "pod.terminating || !pod.hasBeenReady",
    replacement: "pod.terminating",
  },
  {
    breaks: "a zone is not scaled down while another misses pods",
    ...STEADY,
    find: "unavailable(other).missing > 0 || ",
    replacement: "",
  },
  {
    breaks: "a zone is not scaled down while another has surplus pods",
    ...STEADY,
    find: "if (isHealthy(other)) return isSteady(other) ?",
    replacement: "if (isHealthy(other)) return isHealthy(other) ?",
  },
  {
    breaks: "a zone is not scaled down while another's status is older than its spec",
    ...STEADY,
    find: "if (!other.observed) return",
    replacement: "if (!other.observed && other.paused) return",
  },
  {
    breaks: "a pod goes only once its delay is over",
    ...DELAYED,
    find: "now - preparedAt < ms && ",
    replacement: "now - preparedAt < ms / 2 && ",
  },
  {
    breaks: "a delay that cannot be read keeps the pods",
    ...DELAYED,
    find: `if (ms === undefined) return invalid(`,
    replacement: `if (ms === undefined) return undefined;\n  if (ms < 0) return invalid(`,
  },
  {
    breaks: "the youngest of the pods that are to go decides",
    ...DELAYED,
    find: "place > (last?.place ?? -1)) last",
    replacement: "last === undefined) last",
  },
  {
    breaks: "a serviceName that is not a DNS label names no host",
    file: "reconciler/model/fqdn.ts",
    find: "if (DNS_LABEL.test(serviceName)) return undefined;",
    replacement: `if (serviceName !== "") return undefined;`,
    tests: ["test/reconciler/scaler/prepare.test.ts", "test/functions/prepare-scope.test.ts", "test/reconciler/scaling/delayed.test.ts"],
  },
  {
    breaks: "a redirect leads to no other host than the pod",
    file: "infra/pod-http.ts",
    find: "if (next.origin !== url.origin)",
    replacement: "if (next.protocol !== url.protocol)",
    tests: ["test/infra/pod-http.test.ts"],
  },
  {
    breaks: "a pod that refuses its preparation keeps the zone",
    file: "reconciler/scaler/prepare.ts",
    find: "status >= 200 && status < 300 ? readPreparedAt(body) : undefined",
    replacement: "readPreparedAt(body)",
    tests: ["test/reconciler/scaling/mirror-delayed.test.ts"],
  },
  {
    breaks: "what a zone mirrors is read again after its pods were prepared",
    file: "reconciler/scaler/scale-mirror.ts",
    find: "if (!again || mirroredReplicas(zone, again.scale) !== wanted) return undefined;",
    replacement: "",
    tests: ["test/reconciler/scaling/mirror-delayed.test.ts"],
  },
  {
    breaks: "pods are prepared only after an earlier round that takes preparations back has ended",
    file: "reconciler/scaler/teller.ts",
    find: "await last?.done;",
    replacement: "",
    tests: ["test/reconciler/preparation-order.test.ts"],
  },
];
