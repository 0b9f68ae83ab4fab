/** A webhook of one scenario: a server on this machine, and configurations that send it what happens in the scenario's namespace alone. */
import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { generateCertificates } from "../../../infra/certs/generate.ts";
import { dig } from "../../emulator/objects.ts";
import { listen } from "../../loopback.ts";
import { at, configMap, del, post } from "./requests.ts";
import type { Stage } from "./stage.ts";

/** The `response` of the review, without its uid; or no answer at all, or one that is none. */
type Verdict = object | "silence" | "nonsense";
export type Judge = (request: unknown) => Verdict | Promise<Verdict>;

export interface Hook {
  /** Fields of a webhook in a configuration: its rules are `operations` on `resources`, all else can be said in `more`. */
  webhook(name: string, resources: readonly string[], more?: object): object;
  /** Registers webhooks; resolves when the API server calls them. */
  register(type: "Validating" | "Mutating", webhooks: readonly object[]): Promise<void>;
  /** The requests since the last time, as sent, with the URL that they came to. */
  asked(): unknown[];
  close(): Promise<void>;
}

const GROUP = "admissionregistration.k8s.io/v1";
/** Label of the object by which a configuration shows that it is in force. */
const PROBE = { probe: "yes" };
/** A few seconds: the API server takes up a configuration a moment after it was written. */
const ATTEMPTS = 1000;

/** Serves until `close`, which also takes the configurations away. */
export async function startHook(stage: Stage, judge: Judge): Promise<Hook> {
  const { namespace } = stage;
  const hostname = `hook.${namespace}.svc`;
  const certificates = await generateCertificates({ dnsNames: [hostname], organization: "test", validityDays: 1, now: new Date() });
  const requests: unknown[] = [];
  /** URLs at which a configuration has shown that it is in force. */
  const probed = new Set<string>();
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const review = (dig(await json(request), "request") ?? {}) as { uid: string };
    const isProbe = dig(review, "object", "metadata", "labels", "probe") === PROBE.probe;
    if (isProbe) probed.add(request.url ?? "");
    else requests.push({ ...review, url: request.url });
    const verdict = isProbe ? { allowed: true } : await judge(review);
    if (verdict === "nonsense") response.writeHead(500).end("boom");
    if (typeof verdict === "string") return;
    const answer = { uid: review.uid, ...verdict };
    response.end(JSON.stringify({ kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1", response: answer }));
  };
  const server = createServer(
    { key: certificates.keyPem, cert: certificates.certPem },
    (request, response) => void serve(request, response),
  );
  const port = await listen(server);
  stage.nameOf(`:${port}`, ":<port>");
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: "hook" } };
  await stage.quietly(post(at(namespace, "services"), { ...service, spec: { type: "ExternalName", externalName: "localhost" } }));
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
      const probe = webhook(`probe-${type.toLowerCase()}.example.com`, ["configmaps"], { objectSelector: { matchLabels: PROBE } });
      const path = `/apis/${GROUP}/${type.toLowerCase()}webhookconfigurations`;
      const configuration = { apiVersion: GROUP, kind: `${type}WebhookConfiguration`, metadata: { name: namespace } };
      registered.push(`${path}/${namespace}`);
      await stage.quietly(post(path, { ...configuration, webhooks: [...webhooks, probe] }));
      const before = probed.size;
      for (let attempt = 0; probed.size === before; attempt++) {
        if (attempt === ATTEMPTS) throw new Error(`the API server does not call the webhooks of ${path}/${namespace}`);
        await stage.quietly(post(`${at(namespace, "configmaps")}?dryRun=All`, configMap("probe", {}, { labels: PROBE })));
      }
    },
    asked: () => requests.splice(0),
    close: async () => {
      for (const path of registered) await stage.quietly(del(path));
      server.closeAllConnections();
      server.close();
    },
  };
}
