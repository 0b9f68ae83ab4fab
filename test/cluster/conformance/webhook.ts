/**
 * The webhook of a scenario: a server on this machine, and configurations that are limited to the scenario's
 * namespace.
 */
import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { CONNECTION_TIMEOUTS } from "../../../functions/http/server.ts";
import { certify } from "../../certify.ts";
import { dig } from "../../emulator/objects.ts";
import { listen } from "../../loopback.ts";
import { at, configMap, del, post } from "./requests.ts";
import type { Stage } from "./stage.ts";

/** The `response` of the review without its uid, or no response at all, or an HTTP error. */
type HookResponse = object | "none" | "httpError";
export type Handler = (request: unknown) => HookResponse | Promise<HookResponse>;

export interface Hook {
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
export async function startHook(stage: Stage, handler: Handler): Promise<Hook> {
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
