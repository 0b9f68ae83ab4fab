/** The webhooks: preparation, the Lease of a group, callers and limits, certificates. */
import type { Mutation } from "../mutation.ts";

const PREPARE = {
  file: "functions/downscale/prepare-downscale.ts",
  tests: [
    "test/functions/downscale/prepare-downscale.test.ts",
    "test/functions/prepare-trouble.test.ts",
    "test/functions/prepare-scope.test.ts",
  ],
};
const ZONE = { ...PREPARE, file: "functions/downscale/prepare-zone.ts" };
const GROUP_LEASE = {
  file: "reconciler/pending-downscales/downscale-lease.ts",
  tests: ["test/reconciler/pending-downscales/downscale-lease.test.ts"],
};
const TURN = {
  file: "reconciler/downscale/turn.ts",
  tests: ["test/reconciler/downscale/turn.test.ts", "test/functions/downscale-refused-elsewhere.test.ts"],
};
const DECIDE = {
  file: "reconciler/downscale/decide.ts",
  tests: [
    "test/reconciler/downscale/downscale.test.ts",
    "test/reconciler/downscale/unobserved.test.ts",
    "test/functions/downscale/prepare-downscale.test.ts",
  ],
};

const CHART = { file: "infra/helm/zonewise/values.schema.json", tests: ["test/infra/chart.test.ts"] };

export const WEBHOOK_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a downscale is refused if a pod is not prepared",
    ...ZONE,
    find: "if (!(await preparePods(calls, signal))) return",
    replacement: "if (!(await preparePods(calls, signal)) && signal.aborted) return",
  },
  {
    breaks: "a refusal cancels the preparations",
    ...ZONE,
    find: `(await cancelPreparation(calls, CANCEL_MS)) ? "staying" : "unknown"`,
    replacement: `"staying"`,
  },
  {
    breaks: "a preparation that could not be cancelled stays recorded, so that the tick cancels it",
    ...ZONE,
    tests: ["test/functions/prepare-trouble.test.ts", "test/functions/downscale-kills.test.ts"],
    find: `if (pods === "unknown") return`,
    replacement: `if (pods === "unknown") return found;\n  if (recorded !== found) return`,
  },
  {
    breaks: "a dry run prepares no pod",
    ...PREPARE,
    find: `if (request.dryRun) return { allowed: true, reason: "DryRun" };`,
    replacement: "",
  },
  {
    breaks: "a StatefulSet that is not scaled down is not prepared",
    ...PREPARE,
    find: `if (labels[LABELS.noDownscale] === "true") return`,
    replacement: `if (labels[LABELS.noDownscale] === "never") return`,
  },
  {
    breaks: "a StatefulSet that cannot be read is not scaled down",
    ...PREPARE,
    find: `return deny(candidate, "ParentUnknown", "finding the statefulset failed.");`,
    replacement: `return { allowed: true, reason: "ParentUnknown" };`,
  },
  {
    breaks: "the Lease of a group is written only to the version that was read",
    ...GROUP_LEASE,
    file: "infra/kubernetes/lease-object.ts",
    find: "return await cluster.replace(leases, { namespace, name, body: lease }, call);",
    replacement:
      "return await cluster.replace(leases, { namespace, name, body: { ...lease, metadata: (await cluster.get(leases, { namespace, name }, call)).metadata ?? {} } }, call);",
  },
  {
    breaks: "the Lease of a group excludes other requests",
    ...GROUP_LEASE,
    file: "infra/kubernetes/lease-object.ts",
    find: "if (!holderIdentity || holderIdentity === holder) return false;",
    replacement: "return false;",
  },
  {
    breaks: "a zone waits for another whose downscale was admitted and may still be stored",
    file: "functions/downscale/other-zones.ts",
    tests: ["test/functions/downscale/other-zones.test.ts"],
    find: "if (admitted) return",
    replacement: "if (admitted && refusal) return",
  },
  {
    breaks: "a downscale counts that may have happened before an upscale",
    file: "reconciler/downscale/pending.ts",
    tests: ["test/reconciler/downscale/pending.test.ts"],
    find: " || (refused !== true && generation > admittedGeneration + 1)",
    replacement: "",
  },
  {
    breaks: "a zone whose downscales are never stored is refused after a while, so that others have their turn",
    ...TURN,
    find: "<= TURN_MS) return undefined;",
    replacement: "<= 1000 * TURN_MS) return undefined;",
  },
  {
    breaks: "downscales that follow each other count from the first one",
    ...TURN,
    find: "const { since = next.at } = turnOf(earlier, zone, parseTimestamp(next.at) ?? 0) ?? {};",
    replacement: "const since = next.at;",
  },
  {
    breaks: "a zone whose downscale was cancelled waits until its next turn",
    ...TURN,
    file: "reconciler/downscale/conclusion.ts",
    find: "cooldown: cooldownOf(pending, zone, now),",
    replacement: "cooldown: undefined,",
  },
  {
    breaks: "a further downscale is refused before anything is recorded",
    ...TURN,
    file: "reconciler/pending-downscales/downscale-lease.ts",
    find: "if (refusal) return { refusal };",
    replacement: "if (refusal && attempt > 0) return { refusal };",
  },
  {
    breaks: "the time of another zone's last downscale must be over",
    ...DECIDE,
    file: "reconciler/scaling/min-time.ts",
    tests: ["test/reconciler/scaling/min-time.test.ts"],
    find: "if (now - last < min) {",
    replacement: "if (now - last < min - 1000) {",
  },
  {
    breaks: "a zone is not scaled down while another has pods that are not ready",
    ...DECIDE,
    find: "if (status.replicas === ready && status.updated === ready) return undefined;",
    replacement: "if (status.updated === ready) return undefined;",
  },
  {
    breaks: "a zone is not scaled down while the surplus pods of another still run",
    ...DECIDE,
    find: "if (observed && surplus.length === 0) return undefined;",
    replacement: "if (observed) return undefined;",
  },
  {
    breaks: "a zone is not scaled down while the downscale of another is not observed",
    ...DECIDE,
    find: "if (observed && surplus.length === 0) return undefined;",
    replacement: "if (surplus.length === 0) return undefined;",
  },
  {
    breaks: "no-downscale uses the labels from before the change",
    file: "functions/downscale/no-downscale.ts",
    find: `if (old.kind !== "Scale") return old.labels;`,
    replacement: `if (old.kind !== "Scale") return {};`,
    tests: ["test/functions/downscale/no-downscale.test.ts"],
  },
  {
    breaks: "a token must be for our audience",
    file: "infra/kubernetes/tokens.ts",
    find: "{ audience, requiredClaims",
    replacement: "{ requiredClaims",
    tests: ["test/functions/callers.test.ts"],
  },
  {
    breaks: "a token must not have expired",
    file: "infra/kubernetes/tokens.ts",
    find: "currentDate: new Date(now())",
    replacement: "currentDate: new Date(0)",
    tests: ["test/functions/callers.test.ts"],
  },
  {
    breaks: "callers that cannot be checked are not allowed",
    file: "functions/http/admission.ts",
    find: `log.error("the caller's token could not be checked; the request is refused", { error });\n    return false;`,
    replacement: `log.error("the caller's token could not be checked; the request is refused", { error });\n    return true;`,
    tests: ["test/functions/callers.test.ts"],
  },
  {
    breaks: "a body is bounded, regardless of its header",
    file: "functions/http/body.ts",
    find: "if (bytes <= largest) {",
    replacement: "if (bytes > 0) {",
    tests: ["test/functions/http/admission.test.ts"],
  },
  {
    breaks: "all bodies together are bounded",
    file: "functions/http/body.ts",
    find: "if (buffered > MOST_BUFFERED) return TOO_MUCH;",
    replacement: "",
    tests: ["test/functions/bodies.test.ts"],
  },
  {
    breaks: "an answer is given before the deadline",
    file: "functions/http/admission.ts",
    find: "await unlessAborted(handled, deadline.signal).then(",
    replacement: "await handled.then(",
    tests: ["test/functions/deadline.test.ts"],
  },
  {
    breaks: "a request that meets the end of the server is answered on a connection that ends with the answer",
    file: "functions/http/drain.ts",
    find: "if (isLeaving) endConnection(response);",
    replacement: "",
    tests: ["test/functions/http/drain.test.ts"],
  },
  {
    breaks: "a client that is about to use an idle connection of a server that ends is waited for",
    file: "functions/http/drain.ts",
    find: "counted.sayGoodbye();",
    replacement: "counted.sayGoodbye();\n  counted.server.closeIdleConnections();",
    tests: ["test/functions/http/drain.test.ts"],
  },
  {
    breaks: "a new certificate is served without a restart",
    file: "functions/http/certificate.ts",
    find: "if (text !== used) {",
    replacement: `if (used === "") {`,
    tests: ["test/functions/serve.test.ts"],
  },
  {
    breaks: "a certificate without its key is not served",
    file: "functions/http/certificate.ts",
    find: "if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw",
    replacement: "if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)) && key === cert) throw",
    tests: ["test/functions/serve.test.ts"],
  },
  {
    breaks: "a CA bundle is written only to the version of a webhook configuration that was listed",
    file: "infra/certs/configurations.ts",
    find: "return additions.length > 0 ? [test, ...additions] : undefined;",
    replacement: "return additions.length > 0 ? additions : undefined;",
    tests: ["test/infra/certs/races.test.ts"],
  },
  {
    breaks: "a CA bundle of another injector is not changed",
    file: "infra/certs/configurations.ts",
    find: "return isLabelled && OTHER_INJECTORS",
    replacement: "return isLabelled || OTHER_INJECTORS",
    tests: ["test/infra/certs/job.test.ts", "test/reconciler/ca-injection.test.ts"],
  },
  {
    breaks: "a renewal keeps the old CA in the bundle",
    file: "infra/certs/revise.ts",
    find: "return { cas: bundle([...needed, ...material.cas], now), serving: material.serving, next: { certPem, keyPem } };",
    replacement: "return { cas: bundle(needed.slice(0, 1), now), serving: material.serving, next: { certPem, keyPem } };",
    tests: ["test/infra/certs/job-renewal.test.ts"],
  },
  {
    breaks: "a new certificate serves only once its CA has been everywhere for a while",
    file: "infra/certs/decide.ts",
    find: "spreadForMs >= SETTLE_MS) return",
    replacement: "spreadForMs >= 0) return",
    tests: ["test/infra/certs/decide.test.ts", "test/infra/certs/job-renewal.test.ts"],
  },
  {
    breaks: "the first certificate does not replace an existing one",
    file: "infra/certs/first-certificate.ts",
    tests: ["test/infra/certs/first-certificate.test.ts"],
    find: `if (stored.state !== "absent" && stored.state !== "empty") return false;`,
    replacement: "",
  },
  {
    breaks: "the chart refuses a selector that would leave Evictions and Scales unguarded",
    ...CHART,
    find: `"objectSelector": {\n          "type": "object",\n          "if": { "minProperties": 1 },`,
    replacement: `"objectSelector": {\n          "type": "object",\n          "if": { "minProperties": 9 },`,
  },
  {
    breaks: "the chart refuses to let the webhooks concern all namespaces",
    ...CHART,
    find: `"if": { "not": { "required": ["namespaceSelector"] } },`,
    replacement: `"if": false,`,
  },
];
