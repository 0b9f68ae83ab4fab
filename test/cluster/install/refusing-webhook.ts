/**
 * A webhook that denies every request, with a TLS handshake per call: its denial shows that its certificate is trusted.
 */
import { createServer } from "node:https";
import { json } from "node:stream/consumers";
import { listen } from "../../loopback.ts";

interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface RefusingWebhook {
  readonly port: number;
  readonly reload: (pair: KeyPair) => void;
  readonly close: () => void;
}

const REFUSAL = { allowed: false, status: { code: 403, message: "the webhook says no" } };

export async function startWebhook(pair: KeyPair): Promise<RefusingWebhook> {
  const server = createServer(pair, (request, response) => {
    const answerReview = async (): Promise<void> => {
      const { uid } = ((await json(request)) as { request: { uid: string } }).request;
      const answer = { uid, ...REFUSAL };
      response.setHeader("connection", "close");
      response.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: answer }));
    };
    // The API server may have given up.
    void answerReview().catch(() => response.destroy());
  });
  const port = await listen(server, "localhost");
  return {
    port,
    reload: (pair) => server.setSecureContext(pair),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
