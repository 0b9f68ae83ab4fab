/** A stand-in for the original's process, whose binary is not available to tests. */
import { createServer, type Server } from "node:https";
import { json } from "node:stream/consumers";
import { CONNECTION_TIMEOUTS } from "../../../functions/http/server.ts";
import { listen } from "../../loopback.ts";
import { PATHS } from "./original.ts";

interface Review {
  readonly request: {
    readonly uid: string;
    readonly name: string;
    readonly oldObject?: { readonly spec?: { readonly replicas?: number } };
    readonly object?: { readonly spec?: { readonly replicas?: number } };
  };
}

/** The StatefulSet with `no-downscale`. Its Scale has no labels, and the original reads it for them. */
export const GUARDED = "guarded";
/** Evictions of pods whose name begins so are refused, as by a budget with maxUnavailable 0. */
export const KEPT = "kept-";

/** Its answers to a budget of 0, and to a downscale that is not allowed: one without a code, for which 400 stands. */
const CODES: Readonly<Record<string, { readonly code: number }>> = { "/admission/pod-eviction": { code: 403 } };

/** Refuses what this test needs it to refuse, and allows everything else. */
function judge(path: string, { request: { name, object, oldObject } }: Review): boolean {
  if (path === "/admission/pod-eviction") return !name.startsWith(KEPT);
  return (
    path !== "/admission/no-downscale" ||
    name !== GUARDED ||
    (object?.spec?.replicas ?? 0) >= (oldObject?.spec?.replicas ?? 0)
  );
}

interface StandIn {
  readonly port: number;
  /** Ends it as the original ends: without waiting for calls that are under way. */
  readonly kill: () => void;
}

/** Answers at the original's paths, and with 404 at others, as its router does. */
export async function startStandIn(pair: { readonly cert: string; readonly key: string }): Promise<StandIn> {
  const server: Server = createServer({ ...CONNECTION_TIMEOUTS, ...pair }, (request, response) => {
    const path = request.url?.split("?")[0] ?? "";
    if (!PATHS.has(path)) return void response.writeHead(404).end();
    const answerReview = (review: unknown): void => {
      const { uid } = (review as Review).request;
      const allowed = judge(path, review as Review);
      const answer = { uid, allowed, ...(!allowed && { status: { ...CODES[path], message: "the stand-in refuses" } }) };
      response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
    };
    // The API server may have given up.
    void json(request).then(answerReview, () => response.destroy());
  });
  return {
    port: await listen(server),
    kill() {
      server.close();
      server.closeAllConnections();
    },
  };
}
