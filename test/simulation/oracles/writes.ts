/** What each write of our processes carries: the version or the UID of what was judged. Judged from the requests alone. */
import { dig, fieldsOf, listOf, textOf } from "../../emulator/objects.ts";
import type { Caller } from "../network.ts";

/** Objects of which a part is written by others, too. */
const VERSIONED =
  /\/(?:statefulsets|nodes|bottlerocketshadows|rolloutgates|phasedrollouts|rolloutgroups|(?:mutating|validating)webhookconfigurations)\//;
const POD = /\/pods\/[^/]+$/;

/** Calls `violated` with what happened, in words. `onRequest` is told of requests that took effect. */
export function createWriteSafety({ violated }: { readonly violated: (what: string) => void }) {
  return {
    onRequest({ actor, call }: Caller, method: string, target: string, text: string): void {
      if (method === "GET" || !/^(?:reconciler|webhooks|certificates|node-api)-/.test(actor)) return;
      const [path = ""] = target.split("?");
      const why = whyUnjudged(method, path, JSON.parse(text || "{}"));
      if (why !== undefined) violated(`${actor} sends ${call} ${why}: ${text}`);
      // Events about what has no namespace are in the default one.
      if (/\/namespaces\/(?!zonewise\b|default\/events\b)/.test(path))
        violated(`${actor} calls into another namespace: ${path}`);
    },
  };
}

function whyUnjudged(method: string, path: string, body: unknown): string | undefined {
  if (method === "DELETE" && POD.test(path)) {
    const { uid, resourceVersion } = fieldsOf(dig(body, "preconditions"));
    return textOf(uid) && textOf(resourceVersion) ? undefined : "for a pod that it may not have judged";
  }
  const { uid, resourceVersion } = fieldsOf(dig(body, "metadata"));
  const tested = listOf(body).some(
    (step) => dig(step, "op") === "test" && /resourceVersion/.test(String(dig(step, "path"))),
  );
  if (method === "PUT" || (method === "PATCH" && VERSIONED.test(path)))
    return textOf(resourceVersion) || tested ? undefined : "without the version that it has read";
  if (method === "PATCH" && /\/pods\//.test(path)) return textOf(uid) ? undefined : "without the UID of the pod";
  return undefined;
}
