/** The requests to admission webhooks, and the effects of their responses. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { json } from "node:stream/consumers";
import { CONNECTION_TIMEOUTS } from "../../../../functions/http/server.ts";
import { certify } from "../../../certify.ts";
import { dig, textOf } from "../../../emulator/objects.ts";
import { listen } from "../../../loopback.ts";
import { STRATEGIC, at, configMap, del, get, patch, pod, post, put, statefulSet } from "../requests.ts";
import type { Scenario, Stage } from "../stage.ts";

/** The `response` of the review without its uid, or no response at all, or an HTTP error. */
type HookResponse = object | "none" | "httpError";
type Handler = (request: unknown) => HookResponse | Promise<HookResponse>;

interface Hook {
  /** Builds a webhook of a configuration for all operations on `resources`; `more` overrides its fields. */
  webhook(name: string, resources: readonly string[], more?: object): object;
  /** Registers webhooks; resolves once the API server calls them. */
  register(type: "Validating" | "Mutating", webhooks: readonly object[]): Promise<void>;
  /** Returns the admission requests since the last call, with their URLs. */
  takeRequests(): unknown[];
  close(): Promise<void>;
}

const GROUP = "admissionregistration.k8s.io/v1";
/** The label of probe objects: a call for one shows that the API server uses the configuration. */
const PROBE = { probe: "yes" };
/** A few seconds' worth of requests: the API server uses a new configuration after a moment. */
const MAX_ATTEMPTS = 1000;

/** Serves until `close`, which also deletes the configurations. */
async function startHook(stage: Stage, handler: Handler): Promise<Hook> {
  const { namespace } = stage;
  const hostname = `hook.${namespace}.svc`;
  const certificates = await certify(hostname);
  const requests: unknown[] = [];
  /** URLs that have been called for probe objects. */
  const probed = new Set<string>();
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const review = (dig(await json(request), "request") ?? {}) as { uid: string };
    const isProbe = dig(review, "object", "metadata", "labels", "probe") === PROBE.probe;
    if (isProbe) probed.add(request.url ?? "");
    else requests.push({ ...review, url: request.url });
    const hookResponse = isProbe ? { allowed: true } : await handler(review);
    if (hookResponse === "httpError") response.writeHead(500).end("boom");
    if (typeof hookResponse === "string") return;
    const withUid = { uid: review.uid, ...hookResponse };
    response.end(JSON.stringify({ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", response: withUid }));
  };
  const server = createServer(
    { ...CONNECTION_TIMEOUTS, key: certificates.keyPem, cert: certificates.certPem },
    (request, response) => void serve(request, response),
  );
  const port = await listen(server);
  stage.replaceName(`:${port}`, ":<port>");
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: "hook" } };
  await stage.send(
    post(at(namespace, "services"), { ...service, spec: { type: "ExternalName", externalName: "localhost" } }),
  );
  const registered: string[] = [];

  const webhook: Hook["webhook"] = (name, resources, more = {}) => ({
    name,
    admissionReviewVersions: ["v1"],
    sideEffects: "None",
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
    clientConfig: {
      caBundle: Buffer.from(certificates.caPem).toString("base64"),
      service: { name: "hook", namespace, port, path: `/${name}` },
    },
    rules: [{ apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources }],
    ...more,
  });

  return {
    webhook,
    register: async (type, webhooks) => {
      const probe = webhook(`probe-${type.toLowerCase()}.example.com`, ["configmaps"], {
        objectSelector: { matchLabels: PROBE },
      });
      const path = `/apis/${GROUP}/${type.toLowerCase()}webhookconfigurations`;
      const configuration = { apiVersion: GROUP, kind: `${type}WebhookConfiguration`, metadata: { name: namespace } };
      registered.push(`${path}/${namespace}`);
      await stage.send(post(path, { ...configuration, webhooks: [...webhooks, probe] }));
      const before = probed.size;
      for (let attempt = 0; probed.size === before; attempt++) {
        if (attempt === MAX_ATTEMPTS)
          throw new Error(`the API server does not call the webhooks of ${path}/${namespace}`);
        await stage.send(post(`${at(namespace, "configmaps")}?dryRun=All`, configMap("probe", {}, { labels: PROBE })));
      }
    },
    takeRequests: () => requests.splice(0),
    close: async () => {
      for (const path of registered) await stage.send(del(path));
      server.closeAllConnections();
      server.close();
    },
  };
}

const labelled = (label: string): object => ({ objectSelector: { matchLabels: { case: label } } });

/** The webhook's response to an object, by the object's label `case`. */
const BY_CASE: Readonly<Record<string, ReturnType<Handler>>> = {
  denied: {
    allowed: false,
    status: { code: 429, reason: "TooManyRequests", message: "not now", details: { retryAfterSeconds: 7 } },
  },
  "denied-below-400": { allowed: false, status: { code: 200, message: "no" } },
  "denied-bare": { allowed: false },
  "denied-by-reason": { allowed: false, status: { reason: "because" } },
  warned: { allowed: true, warnings: ['careful "you"', "and you"] },
  broken: "httpError",
  "broken-passed-over": "httpError",
  slow: "none",
  "another-question": { uid: "x", allowed: true },
  patched: jsonPatch([{ op: "add", path: "/data", value: { added: "yes" } }]),
  "patched-badly": jsonPatch([{ op: "remove", path: "/data/none" }]),
};

function jsonPatch(operations: readonly object[]): object {
  return { allowed: true, patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(operations)).toString("base64") };
}

const byCase: Handler = (request) =>
  BY_CASE[textOf(dig(request, "object", "metadata", "labels", "case")) ?? ""] ?? { allowed: true };

export const admission: readonly Scenario[] = [
  scenario("a webhook's response is applied, and its warnings and errors are returned", byCase, async (stage, hook) => {
    const others = Object.keys(BY_CASE).filter(
      (label) => !["broken-passed-over", "slow", "patched", "patched-badly"].includes(label),
    );
    const ofOthers = { objectSelector: { matchExpressions: [{ key: "case", operator: "In", values: others }] } };
    await hook.register("Validating", [
      hook.webhook("a.example.com", ["configmaps"], ofOthers),
      hook.webhook("lenient.example.com", ["configmaps"], {
        ...labelled("broken-passed-over"),
        failurePolicy: "Ignore",
      }),
      hook.webhook("slow.example.com", ["configmaps"], { ...labelled("slow"), timeoutSeconds: 1 }),
      hook.webhook("elsewhere.example.com", ["configmaps"], { namespaceSelector: { matchLabels: { no: "such" } } }),
    ]);
    await hook.register("Mutating", [
      hook.webhook("good.example.com", ["configmaps"], labelled("patched")),
      hook.webhook("bad.example.com", ["configmaps"], labelled("patched-badly")),
    ]);
    const all = at(stage.namespace, "configmaps");
    for (const label of Object.keys(BY_CASE)) {
      const request = post(all, configMap(label, { k: "1" }, { labels: { case: label } }));
      const { headers } = await (label === "patched-badly"
        ? stage.refused(label, request)
        : stage.call(label, request, "data"));
      stage.record(`${label}: headers`, { warning: headers["warning"], "retry-after": headers["retry-after"] });
      stage.record(
        `${label}: reviews`,
        hook.takeRequests().map((request) => dig(request, "url")),
      );
    }
  }),
  scenario("webhooks review each write", byCase, async (stage, hook) => {
    const sets = at(stage.namespace, "statefulsets");
    const recordReviews = (): void => {
      const reviews = hook.takeRequests();
      stage.record("reviews", reviews.length);
      for (const review of reviews)
        stage.recordChanges("review", `review of ${textOf(dig(review, "kind", "kind"))}`, withoutUser(review));
    };
    const step = async (name: string, request: Parameters<Stage["call"]>[1]): Promise<void> => {
      await stage.call(name, request);
      recordReviews();
    };
    await hook.register("Validating", [
      hook.webhook("a.example.com", ["statefulsets", "statefulsets/scale", "pods/eviction"], { timeoutSeconds: 7 }),
    ]);
    await step(
      "create",
      post(
        `${sets}?fieldManager=me`,
        statefulSet("z", { replicas: 0, spec: { updateStrategy: { type: "OnDelete" } } }),
      ),
    );
    await settle(stage, `${sets}/z`);
    hook.takeRequests();
    await step(
      "patch",
      patch(
        `${sets}/z`,
        { spec: { template: { spec: { containers: [{ name: "main", image: "app:2" }] } } } },
        STRATEGIC,
      ),
    );
    await settle(stage, `${sets}/z`);
    await step("patch of nothing new", patch(`${sets}/z`, { metadata: { name: "z" } }));
    const { body } = await stage.send(get(`${sets}/z/scale`));
    await step(
      "replace of the scale in a dry run",
      put(`${sets}/z/scale?dryRun=All`, { ...(body as object), spec: { replicas: 2 } }),
    );
    await step("patch of the scale", patch(`${sets}/z/scale?fieldManager=kubectl-scale`, { spec: { replicas: 0 } }));
    await step(
      "the status subresource is not in the rules",
      patch(`${sets}/z/status`, { status: { conditions: [{ type: "a", status: "True" }] } }),
    );
    await stage.send(post(at(stage.namespace, "pods"), pod("p", {}, { nodeName: "node-1" })));
    const eviction = (more: object = {}): object => ({
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: "p" },
      ...more,
    });
    const evict = (name: string, query = ""): string => at(stage.namespace, "pods", name, `eviction${query}`);
    await step("eviction in a dry run", post(evict("p", "?dryRun=All"), eviction()));
    await step("eviction in a dry run of its own", post(evict("p"), eviction({ deleteOptions: { dryRun: ["All"] } })));
    await stage.call("neither evicts", get(at(stage.namespace, "pods", "p")), "metadata.deletionTimestamp");
    await step("eviction of a missing pod", post(evict("none"), { ...eviction(), metadata: { name: "none" } }));
    await step("eviction under another name", post(evict("p"), { ...eviction(), metadata: { name: "q" } }));
    await step("eviction", post(evict("p"), eviction({ deleteOptions: { gracePeriodSeconds: 5 } })));
    await step("delete in a dry run", { method: "DELETE", path: `${sets}/z?dryRun=All` });
    await step("delete", { method: "DELETE", path: `${sets}/z`, body: { propagationPolicy: "Background" } });
  }),
  {
    name: "a change that conflicts with another is admitted again, unless it names a resourceVersion",
    run: async (stage) => {
      const one = at(stage.namespace, "configmaps", "a");
      let conflicts = false;
      const handler: Handler = async (request) => {
        if (conflicts && dig(request, "object", "data", "mine") !== undefined) {
          conflicts = false;
          await stage.send(patch(one, { data: { theirs: String(dig(request, "object", "data", "mine")) } }));
        }
        return { allowed: true };
      };
      await withHook(stage, handler, async (hook) => {
        const { body } = await stage.send(post(at(stage.namespace, "configmaps"), configMap("a", { theirs: "0" })));
        await hook.register("Validating", [hook.webhook("a.example.com", ["configmaps"])]);
        conflicts = true;
        await stage.call("patch", patch(one, { data: { mine: "1" } }), "data");
        stage.record(
          "reviews",
          hook.takeRequests().map((request) => [dig(request, "oldObject", "data"), dig(request, "object", "data")]),
        );
        conflicts = true;
        const resourceVersion = dig((await stage.send(get(one))).body, "metadata", "resourceVersion");
        await stage.call(
          "patch of a version",
          patch(one, { metadata: { resourceVersion }, data: { mine: "2" } }),
          "data",
        );
        conflicts = true;
        await stage.call("replace without a version", put(one, configMap("a", { mine: "3" })), "data");
        stage.record("created as", dig(body, "data"));
      });
    },
  },
];

function scenario(name: string, handler: Handler, run: (stage: Stage, hook: Hook) => Promise<void>): Scenario {
  return { name, run: (stage) => withHook(stage, handler, (hook) => run(stage, hook)) };
}

async function withHook(stage: Stage, handler: Handler, run: (hook: Hook) => Promise<void>): Promise<void> {
  const hook = await startHook(stage, handler);
  try {
    await run(hook);
  } finally {
    await hook.close();
  }
}

/** Removes the user, which differs between clusters, and the uid, which is random. */
function withoutUser(request: unknown): object {
  const { userInfo: _, uid: __, ...rest } = request as { userInfo: unknown; uid: unknown };
  return rest;
}

/** Resolves once the controller has observed the set's current generation. */
async function settle(stage: Stage, path: string): Promise<void> {
  const { body } = await stage.send(get(path));
  const watching = await stage.watch(`${at(stage.namespace, "statefulsets")}?watch=1&resourceVersion=0`);
  const generation = dig(body, "metadata", "generation");
  await watching.until((events) => dig(events.at(-1)?.object, "status", "observedGeneration") === generation);
}
