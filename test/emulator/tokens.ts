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

export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  /** Of a token that is bound to a pod: the pod and its node, as lists of one. */
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

interface Named {
  readonly name: string;
  readonly uid: string | undefined;
}

/** What a token is issued for. */
interface TokenRequest {
  readonly audiences: readonly string[];
  readonly seconds: number;
  /** The pod that the token is bound to: it ends with the pod. */
  readonly pod?: Named;
}

export type Tokens = ReturnType<typeof createTokens>;

export const ADMIN_TOKEN = "admin-token";
const ISSUER = "https://kubernetes.default.svc";
const ADMIN: User = { username: "admin", uid: "admin", groups: ["system:masters", "system:authenticated"] };

export function createTokens(store: Store, clock: Clock) {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const kid = randomUUID();

  /** A token that is bound to a pod ends with it: serviceaccount/claims.go. */
  const isPodThere = (namespace: string, claims: unknown): boolean => {
    const pod = textOf(dig(claims, "pod", "name"));
    return pod === undefined || store.get("pods", namespace, pod)?.metadata.uid === dig(claims, "pod", "uid");
  };

  const nodeOf = (namespace: string, pod: Named): Named | undefined => {
    const name = textOf(dig(store.get("pods", namespace, pod.name), "spec", "nodeName"));
    return name === undefined ? undefined : { name, uid: store.get("nodes", "", name)?.metadata.uid };
  };

  /** Undefined for a forged or expired token, for other audiences, and for a deleted ServiceAccount or pod. */
  const userOf = async (token: string, audience: string[]): Promise<User | undefined> => {
    if (token === ADMIN_TOKEN) return ADMIN;
    try {
      const { payload } = await jwtVerify(token, publicKey, { audience, currentDate: new Date(clock.now()) });
      const username = payload.sub ?? "";
      const [, , namespace = "", name = ""] = username.split(":");
      const uid = store.get("serviceaccounts", namespace, name)?.metadata.uid;
      const claims = dig(payload, "kubernetes.io");
      if (uid === undefined || uid !== dig(claims, "serviceaccount", "uid") || !isPodThere(namespace, claims))
        return undefined;
      const groups = ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"];
      return { username, uid, groups, ...extraOf(claims) };
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
    issue: async (namespace: string, name: string, { audiences, seconds, pod }: TokenRequest) => {
      const uid = store.get("serviceaccounts", namespace, name)?.metadata.uid;
      const iat = Math.floor(clock.now() / 1000);
      const exp = iat + seconds;
      const aud = audiences.length > 0 ? [...audiences] : [ISSUER];
      const sub = `system:serviceaccount:${namespace}:${name}`;
      const node = pod && nodeOf(namespace, pod);
      const bound = { ...(pod && { pod }), ...(node && { node }) };
      const claims = {
        aud,
        exp,
        iat,
        nbf: iat,
        iss: ISSUER,
        sub,
        "kubernetes.io": { namespace, serviceaccount: { name, uid }, ...bound },
      };
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

/**
 * https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#additional-metadata-in-pod-bound-tokens
 */
function extraOf(claims: unknown): Pick<User, "extra"> {
  const found = ["pod", "node"].flatMap((kind) =>
    ["name", "uid"].map((field) => [kind, field, textOf(dig(claims, kind, field))] as const),
  );
  const extra = found.flatMap(([kind, field, value]) =>
    value === undefined ? [] : [[`authentication.kubernetes.io/${kind}-${field}`, [value]]],
  );
  return extra.length === 0 ? {} : { extra: Object.fromEntries(extra) as NonNullable<User["extra"]> };
}
