/**
 * The cluster of the settled bench in a process of its own: rollout groups of three zones that are at rest, a budget
 * each, all definitions, and the eviction webhook as the manifests register it. It prints its kubeconfig, and answers
 * each message with the requests since the last one, by verb and kind.
 *
 *   settled-cluster.ts '{"groups": 20, "replicas": 3, "port": 8443}'
 */
import { subscribe } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { parse } from "yaml";
import { startEmulator } from "../emulator/index.ts";
import type { Draft } from "../emulator/objects.ts";
import { define } from "../demo/definitions.ts";
import { createGroups, type Size } from "./groups.ts";
import { add } from "../builders/objects.ts";

interface Settled extends Size {
  /** Where the eviction webhook is served; undefined if none is to be registered. */
  readonly port?: number;
  /** The CA of its certificate, PEM. */
  readonly ca?: string;
}

const NAMESPACE = "default";
const PATH = /^\/apis?\/(?:[^/]+\/)?v[^/]+\/(?:namespaces\/[^/]+\/)?([^/]+)(?:\/([^/]+)(?:\/([^/]+))?)?$/;
const MANIFEST = new URL("../../infra/manifests/webhooks/pod-eviction.yaml", import.meta.url);
const DEFINITIONS = ["zoneawarepoddisruptionbudgets", "rolloutgates", "rolloutgroups", "phasedrollouts"];

const given = JSON.parse(process.argv[2] ?? "") as Settled;
const emulator = await startEmulator();
const { store } = emulator;
await define(store, DEFINITIONS);
await createGroups(emulator, given);
for (let i = 0; i < given.groups; i++) createBudget(`g${i}`);
if (given.port !== undefined) registerWebhook(given.port, given.ca ?? "");
let calls: Record<string, number> = {};
subscribe("http.server.request.start", (message) => {
  const what = describe((message as { readonly request: IncomingMessage }).request);
  calls[what] = (calls[what] ?? 0) + 1;
});
process.on("message", () => {
  process.send?.(calls);
  calls = {};
});
console.log(JSON.stringify(emulator.kubeconfig()));

/** Such as "GET leases", "LIST statefulsets" or "POST pods/eviction". */
function describe({ method = "", url = "" }: IncomingMessage): string {
  const [path = "", query = ""] = url.split("?");
  const [, resource = path, name, below] = PATH.exec(path) ?? [];
  const verb = query.includes("watch=") ? "WATCH" : method === "GET" && name === undefined ? "LIST" : method;
  return `${verb} ${resource}${below === undefined ? "" : `/${below}`}`;
}

function createBudget(group: string): void {
  add(store, "ZoneAwarePodDisruptionBudget", group, {
    namespace: NAMESPACE,
    spec: { maxUnavailable: 1, selector: { matchLabels: { "rollout-group": group } } },
  });
}

function registerWebhook(port: number, ca: string): void {
  const text = readFileSync(MANIFEST, "utf8").replaceAll("zonewise", NAMESPACE).replace("port: 443", `port: ${port}`);
  const configuration = parse(text) as Draft & { readonly webhooks: { clientConfig: object }[] };
  for (const webhook of configuration.webhooks)
    webhook.clientConfig = { ...webhook.clientConfig, caBundle: Buffer.from(ca).toString("base64") };
  store.create("mutatingwebhookconfigurations.admissionregistration.k8s.io", configuration);
  add(store, "Service", "rollout-operator", {
    namespace: NAMESPACE,
    spec: { type: "ExternalName", externalName: "127.0.0.1" },
  });
}
