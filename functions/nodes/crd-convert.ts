/**
 * The conversion webhook of BottlerocketShadows. The API server sends no credentials here, and a whole list in one
 * review: there is no token to check, and the bound of a body is larger than that of admission. Every review is
 * answered with 200; `Failure` inside it fails the request of the API server's client.
 */
import type { IncomingMessage } from "node:http";
import { answerConversion } from "../../reconciler/nodes/convert.ts";
import { ROUTES } from "../../reconciler/nodes/routes.ts";
import {
  createBodyReader,
  type HttpRefusal,
  type Exchange,
  type Handler,
  type HttpAnswer,
  refuseRequest,
  type Rim,
  serveEndpoint,
} from "../http/rim.ts";

/** Bytes: shadows have 2 kB, so that 15,000 of them are converted at once. */
export const MAX_REVIEW = 32 * 1024 * 1024;

interface Converted {
  readonly value: object;
  readonly bytes: number;
}

/** Serves the conversion over HTTP. */
export function serveConversion(rim: Pick<Rim, "clock" | "log" | "metrics" | "requestTimeoutMs">): Handler {
  const readBody = createBodyReader(MAX_REVIEW);

  async function convert(request: IncomingMessage, signal: AbortSignal): Promise<Converted | HttpRefusal> {
    if (request.method !== ROUTES.convert.method) return { status: 405, message: "POST a ConversionReview" };
    try {
      const body = await readBody(request, signal);
      if ("status" in body) return body;
      const value = answerConversion(body.value);
      return value ? { value, bytes: body.bytes } : { status: 400, message: "the body is not a ConversionReview" };
    } catch (error) {
      rim.log.warn("the request for a conversion could not be read", { error });
      return { status: 400, message: "the body was cut off, or took too long" };
    }
  }

  async function answer({ request, signal }: Exchange): Promise<HttpAnswer> {
    const converted = await convert(request, signal);
    if ("status" in converted) return refuseRequest(converted, { error: converted.message, code: "BadRequest" });
    const { value, bytes: receivedBytes } = converted;
    return { status: 200, text: JSON.stringify(value), headers: { "content-type": "application/json" }, receivedBytes };
  }

  return serveEndpoint({ route: "crdconvert", deadlineMs: () => rim.requestTimeoutMs, answer }, rim);
}
