/**
 * The conversion webhook of BottlerocketShadows. The API server sends no credentials here, and a whole list in one
 * review: there is no token to check, and the bound of a body is larger than that of admission. Every review is
 * answered with 200; `Failure` inside it fails the request of the API server's client.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { startDeadline } from "../../infra/deadline.ts";
import { answerConversion } from "../../reconciler/nodes/convert-review.ts";
import { ROUTES } from "../../reconciler/nodes/routes.ts";
import type { Handler, Rim } from "../http/admission.ts";
import { createBodyReader, type HttpRefusal } from "../http/body.ts";

/** Bytes: shadows have 2 kB, so that 15,000 of them are converted at once. */
export const LARGEST_REVIEW = 32 * 1024 * 1024;

const ROUTE = "crdconvert";

/** Never rejects. */
export function serveConversion({
  clock,
  log,
  metrics,
  requestTimeoutMs,
}: Pick<Rim, "clock" | "log" | "metrics" | "requestTimeoutMs">): Handler {
  const readBody = createBodyReader(LARGEST_REVIEW);

  async function answer(
    request: IncomingMessage,
    signal: AbortSignal,
  ): Promise<{ readonly value: object; readonly bytes: number } | HttpRefusal> {
    if (request.method !== ROUTES.convert.method) return { status: 405, message: "POST a ConversionReview" };
    try {
      const body = await readBody(request, signal);
      if ("status" in body) return body;
      const value = answerConversion(body.value);
      return value ? { value, bytes: body.bytes } : { status: 400, message: "the body is no ConversionReview" };
    } catch (error) {
      log.warn("the request for a conversion could not be read", { error });
      return { status: 400, message: "the body was cut off, or took too long" };
    }
  }

  return async (request, response) => {
    const start = clock.monotonic();
    const method = request.method ?? "";
    metrics.requestStarted(method, ROUTE);
    using deadline = startDeadline(requestTimeoutMs);
    const answered = await answer(request, deadline.signal);
    const sentBytes =
      "status" in answered ? refuse(response, answered) : send(response, 200, JSON.stringify(answered.value));
    const receivedBytes = "status" in answered ? 0 : answered.bytes;
    const seconds = (clock.monotonic() - start) / 1000;
    metrics.requestDone({ method, route: ROUTE, status: response.statusCode, seconds, receivedBytes, sentBytes });
  };
}

/** Closes the connection, as the rest of the body is not read. */
function refuse(response: ServerResponse, { status, message }: HttpRefusal): number {
  response.setHeader("connection", "close");
  if (status === 405) response.setHeader("allow", ROUTES.convert.method);
  return send(response, status, JSON.stringify({ error: message, code: "BadRequest" }));
}

function send(response: ServerResponse, status: number, text: string): number {
  const bytes = Buffer.byteLength(text);
  response.writeHead(status, { "content-type": "application/json", "content-length": bytes }).end(text);
  return bytes;
}
