/** Who calls us: ServiceAccount tokens of the cluster, checked against the keys that its API server publishes. The only importer of jose in the product. */
import { createRemoteJWKSet, customFetch, errors, jwtVerify } from "jose";
import { systemClock } from "../clock.ts";
import type { Connection } from "./connection.ts";
import { createRateLimiter } from "./rate-limit.ts";
import { type Observer, requestJson } from "./request.ts";
import type { OnDate } from "../server-clock.ts";

export interface TokenOptions {
  /** What the token must be for. */
  readonly audience: string;
  /** Milliseconds that fetching the keys may take. */
  readonly timeoutMs: number;
  readonly observer?: Observer;
  readonly onDate?: OnDate;
  /** By which tokens are judged, milliseconds since the epoch: the API server's, which signed them. */
  readonly now?: () => number;
}

/** https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#service-account-issuer-discovery */
const KEYS_PATH = "/openid/v1/jwks";
/** All that the API server has there; it refuses other wishes with 406. */
const KEYS_TYPE = "application/jwk-set+json";
const BEARER = /^Bearer (?<token>[\w.~+/=-]{1,16384})$/i;

/**
 * Judges an Authorization header: resolves with true for a token that is genuine, in time and for our audience, with false for any other;
 * rejects when the keys cannot be had. Keys are kept for 10 minutes; an unknown key asks for them anew, at most every 30 seconds.
 */
export function createTokenCheck(connection: Connection, options: TokenOptions): (authorization: string | undefined) => Promise<boolean> {
  const { audience, timeoutMs, observer, onDate, now = systemClock.now } = options;
  const limiter = createRateLimiter({ qps: 0, burst: 0 }, systemClock);
  const wiring = { connection, clock: systemClock, limiter, observer, onDate };
  const fetchKeys = async (): Promise<Response> => {
    const call = {
      method: "GET",
      what: "get the keys of ServiceAccount tokens",
      path: KEYS_PATH,
      query: {},
      accept: KEYS_TYPE,
    } as const;
    return Response.json(await requestJson(wiring, { ...call, deadlineMs: timeoutMs, signal: undefined }));
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
