/**
 * Checks ServiceAccount tokens of callers against the keys that the API server publishes. The only module that imports
 * jose.
 */
import { createRemoteJWKSet, customFetch, decodeJwt, errors, jwtVerify } from "jose";
import { systemClock } from "../clock.ts";
import type { Connection } from "./connection.ts";
import { createRateLimiter } from "./rate-limit.ts";
import { type ApiObserver, requestObject } from "./request.ts";
import type { OnDate } from "../server-clock.ts";
import { NO_TRACER, type Tracer } from "../tracing/tracer.ts";

interface TokenOptions {
  /** The audience that the token must have. */
  readonly audience: string;
  /** Timeout of fetching the keys, in milliseconds. */
  readonly timeoutMs: number;
  readonly observer?: ApiObserver;
  readonly onDate?: OnDate;
  readonly tracer?: Tracer;
  /** The API server's time, milliseconds since the epoch, as the API server signs the tokens. */
  readonly now?: () => number;
}

/**
 * https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#service-account-issuer-discovery
 */
const KEYS_PATH = "/openid/v1/jwks";
/** The only media type of that endpoint; the API server answers any other with 406. */
const KEYS_TYPE = "application/jwk-set+json";
const BEARER = /^Bearer (?<token>[\w.~+/=-]{1,16384})$/i;

/**
 * Checks an Authorization header: resolves with true for a genuine, unexpired token for our audience, with false for
 * any other; rejects if the keys cannot be read. Keys are cached for 10 minutes; an unknown key causes another read, at
 * most every 30 seconds.
 */
export function createTokenCheck(
  connection: Connection,
  options: TokenOptions,
): (authorization: string | undefined) => Promise<boolean> {
  const { audience, timeoutMs, observer, onDate, tracer = NO_TRACER, now = systemClock.now } = options;
  const limiter = createRateLimiter({ qps: 0, burst: 0 }, systemClock);
  const wiring = { connection, clock: systemClock, limiter, observer, onDate, tracer };
  const fetchKeys = async (): Promise<Response> => {
    const call = {
      method: "GET",
      what: "get the keys of ServiceAccount tokens",
      path: KEYS_PATH,
      query: {},
      accept: KEYS_TYPE,
    } as const;
    return Response.json(await requestObject(wiring, { ...call, deadlineMs: timeoutMs, signal: undefined }));
  };
  const keys = createRemoteJWKSet(new URL(KEYS_PATH, connection.server), { [customFetch]: fetchKeys });
  return async (authorization = "") => {
    const token = BEARER.exec(authorization)?.groups?.["token"];
    if (token === undefined) return false;
    try {
      await jwtVerify(token, keys, { audience, requiredClaims: ["sub", "exp"], currentDate: new Date(now()) });
      return true;
    } catch (error) {
      if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout)) return false;
      throw error;
    }
  };
}

/**
 * True if the text is a JWT with this audience, so that a TokenReview is worth a request. The TokenReview checks its
 * signature and its time.
 */
export function isTokenFor(token: string, audience: string): boolean {
  try {
    const { aud } = decodeJwt(token);
    return [aud].flat().includes(audience);
  } catch {
    return false;
  }
}
