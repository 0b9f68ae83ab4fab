/** The webhooks: callers, limits and deadlines, certificates, and what the chart refuses. */
import type { Mutation } from "../mutation.ts";

const CHART = { file: "infra/helm/zonewise/values.schema.json", tests: ["test/infra/chart.test.ts"] };

export const WEBHOOK_MUTATIONS: readonly Mutation[] = [
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
    find: "if (buffered > MAX_BUFFERED) return TOO_MUCH;",
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
    tests: ["test/infra/certs/act/races.test.ts"],
  },
  {
    breaks: "a CA bundle of another injector is not changed",
    file: "infra/certs/configurations.ts",
    find: "return isLabelled && OTHER_INJECTORS",
    replacement: "return isLabelled || OTHER_INJECTORS",
    tests: ["test/infra/certs/act/job.test.ts", "test/reconciler/run/ca-injection.test.ts"],
  },
  {
    breaks: "a renewal keeps the old CA in the bundle",
    file: "infra/certs/act/revise.ts",
    find: "return { cas: bundle([...needed, ...material.cas], now), serving: material.serving, next: { certPem, keyPem } };",
    replacement:
      "return { cas: bundle(needed.slice(0, 1), now), serving: material.serving, next: { certPem, keyPem } };",
    tests: ["test/infra/certs/act/job-renewal.test.ts"],
  },
  {
    breaks: "a new certificate serves only once its CA has been everywhere for a while",
    file: "infra/certs/decide-certificate.ts",
    find: "spreadForMs >= SETTLE_MS) return",
    replacement: "spreadForMs >= 0) return",
    tests: ["test/infra/certs/decide-certificate.test.ts", "test/infra/certs/act/job-renewal.test.ts"],
  },
  {
    breaks: "the first certificate does not replace an existing one",
    file: "infra/certs/act/first-certificate.ts",
    tests: ["test/infra/certs/act/first-certificate.test.ts"],
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
  {
    breaks: "the status page answers for hosts that it knows alone",
    file: "functions/status/answer.ts",
    find: "if (!isKnown) return {",
    replacement: "if (host === undefined) return {",
    tests: ["test/functions/status/answer.test.ts"],
  },
];
