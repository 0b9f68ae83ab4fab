/**
 * Authentication: the administrator's token, and ServiceAccount tokens (ES256 JWTs) whose keys the server
 * publishes.
 */
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { jwtVerify, SignJWT } from "jose";
import { statusError } from "./api-error.ts";
import type { Clock } from "./clock.ts";
import { dig, type Fields, listOf, textOf } from "./objects.ts";
import type { Store } from "./store.ts";

export type User = { readonly username: string; readonly uid?: string; readonly groups: readonly string[] };
export type Tokens = ReturnType<typeof createTokens>;

export const ADMIN_TOKEN = "admin-token";
const ISSUER = "https://kubernetes.default.svc";
const ADMIN: User = { username: "admin", uid: "admin", groups: ["system:masters", "system:authenticated"] };

export function createTokens(store: Store, clock: Clock) {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const kid = randomUUID();

  /** Undefined for a forged or expired token, for other audiences, and for a deleted ServiceAccount. */
  const userOf = async (token: string, audience: string[]): Promise<User | undefined> => {
    if (token === ADMIN_TOKEN) return ADMIN;
    try {
      const { payload } = await jwtVerify(token, publicKey, { audience, currentDate: new Date(clock.now()) });
      const username = payload.sub ?? "";
      const [, , namespace = "", name = ""] = username.split(":");
      const uid = store.get("serviceaccounts", namespace, name)?.metadata.uid;
      if (uid === undefined || uid !== dig(payload, "kubernetes.io", "serviceaccount", "uid")) return undefined;
      return { username, uid, groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"] };
    } catch {
      return undefined;
    }
  };

  return {
    /** Throws Unauthorized (401). */
    authenticate: async (token = ""): Promise<User> => {
      const user = await userOf(token, [ISSUER]);
      if (!user) throw statusError("Unauthorized", "Unauthorized");
      return user;
    },
    /** Issues a token for an existing ServiceAccount; `expires` is in milliseconds since the epoch. */
    issue: async (namespace: string, name: string, audiences: readonly string[], seconds: number) => {
      const uid = store.get("serviceaccounts", namespace, name)?.metadata.uid;
      const iat = Math.floor(clock.now() / 1000);
      const exp = iat + seconds;
      const aud = audiences.length > 0 ? [...audiences] : [ISSUER];
      const sub = `system:serviceaccount:${namespace}:${name}`;
      const claims = { aud, exp, iat, nbf: iat, iss: ISSUER, sub, "kubernetes.io": { namespace, serviceaccount: { name, uid } } };
      const token = await new SignJWT(claims).setProtectedHeader({ alg: "ES256", kid }).sign(privateKey);
      return { token, expires: exp * 1000 };
    },
    /** Returns the status of a TokenReview with this spec. */
    review: async (spec: unknown): Promise<Fields> => {
      const requested = listOf(dig(spec, "audiences")).map(String);
      const audiences = requested.length > 0 ? requested : [ISSUER];
      const user = await userOf(textOf(dig(spec, "token")) ?? "", audiences);
      return user ? { authenticated: true, user, audiences } : { user: {}, error: "invalid bearer token" };
    },
    /** The public key as a JSON Web Key Set. */
    keys: (): Fields => ({ keys: [{ ...publicKey.export({ format: "jwk" }), kid, use: "sig", alg: "ES256" }] }),
  };
}
