/**
 * The conversion webhook of BottlerocketShadows. The API server sends no credentials here, and a whole list in one
 * review: there is no token to check, and the bound of a body is larger than that of admission. Every review is
 * answered with 200; `Failure` inside it fails the request of the API server's client.
 */
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

/** Serves the conversion over HTTP. */
export function serveConversion(rim: Pick<Rim, "clock" | "log" | "metrics" | "requestTimeoutMs">): Handler {
  const readBody = createBodyReader(MAX_REVIEW);
  const refuse = (refusal: HttpRefusal): HttpAnswer =>
    refuseRequest(refusal, { error: refusal.message, code: "BadRequest" });

  async function answer({ request, signal }: Exchange): Promise<HttpAnswer> {
    if (request.method !== ROUTES.convert.method) return refuse({ status: 405, message: "POST a ConversionReview" });
    const body = await readBody(request, signal).catch((error: unknown): HttpRefusal => {
      rim.log.warn("the request for a conversion could not be read", { error });
      return { status: 400, message: "the body was cut off, or took too long" };
    });
    if ("status" in body) return refuse(body);
    const value = answerConversion(body.value);
    if (!value) return refuse({ status: 400, message: "the body is not a ConversionReview" });
    const headers = { "content-type": "application/json" };
    return { status: 200, text: JSON.stringify(value), headers, receivedBytes: body.bytes };
  }

  return serveEndpoint({ route: "crdconvert", deadlineMs: () => rim.requestTimeoutMs, answer }, rim);
}
