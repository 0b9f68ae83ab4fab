/** Who calls: the administrator's token, and ServiceAccount tokens (ES256 JWTs) that the server signs and publishes keys for. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomUUID, sign, verify } from "node:crypto";
import { refusal } from "./api-error.ts";
import type { Clock } from "./clock.ts";
import { dig, isFields, listOf, numberOf, textOf } from "./objects.ts";
import type { Fields } from "./objects.ts";
import type { Store } from "./store.ts";

export interface User {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface Tokens {
  /** Throws Unauthorized (401). */
  authenticate(token: string | undefined): User;
  /** A token of an existing ServiceAccount; `seconds` is at least 600. */
  issue(namespace: string, name: string, audiences: readonly string[], seconds: number): { token: string; expires: number };
  /** The answer to a TokenReview's spec, as its status. */
  review(spec: unknown): Fields;
  keys(): Fields;
}

export const ADMIN_TOKEN = "admin-token";
const ISSUER = "https://kubernetes.default.svc";
const ADMIN: User = { username: "admin", uid: "admin", groups: ["system:masters", "system:authenticated"] };
const ENCODING = "ieee-p1363";

export function createTokens(store: Store, clock: Clock): Tokens {
  const pair = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  const privateKey = createPrivateKey(pair.privateKey);
  const publicKey = createPublicKey(pair.publicKey);
  const kid = randomUUID();

  const read = (token: string, audiences: readonly string[]): User | string => {
    const [head = "", body = "", signature = ""] = token.split(".");
    const isSigned = verify(
      "sha256",
      Buffer.from(`${head}.${body}`),
      { key: publicKey, dsaEncoding: ENCODING },
      Buffer.from(signature, "base64url"),
    );
    if (!isSigned) return "invalid bearer token";
    const claims: unknown = JSON.parse(Buffer.from(body, "base64url").toString());
    if ((numberOf(dig(claims, "exp")) ?? 0) * 1000 <= clock.now()) return "service account token has expired";
    if (!listOf(dig(claims, "aud")).some((audience) => audiences.includes(String(audience))))
      return "token audiences is invalid for the target audiences";
    const about = dig(claims, "kubernetes.io");
    const namespace = textOf(dig(about, "namespace")) ?? "";
    const name = textOf(dig(about, "serviceaccount", "name")) ?? "";
    const uid = textOf(dig(about, "serviceaccount", "uid")) ?? "";
    if (store.get("serviceaccounts", namespace, name)?.metadata.uid !== uid) return "service account token has been invalidated";
    return {
      username: `system:serviceaccount:${namespace}:${name}`,
      uid,
      groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
      extra: { "authentication.kubernetes.io/credential-id": [`JTI=${String(dig(claims, "jti"))}`] },
    };
  };

  const userOf = (token: string, audiences: readonly string[]): User | string => {
    if (token === ADMIN_TOKEN) return ADMIN;
    try {
      return read(token, audiences);
    } catch {
      return "invalid bearer token";
    }
  };

  return {
    authenticate: (token) => {
      const user = userOf(token ?? "", [ISSUER]);
      if (typeof user === "string") throw refusal("Unauthorized", "Unauthorized");
      return user;
    },
    issue: (namespace, name, audiences, seconds) => {
      const uid = store.get("serviceaccounts", namespace, name)?.metadata.uid;
      const now = Math.floor(clock.now() / 1000);
      const claims = {
        aud: audiences.length > 0 ? audiences : [ISSUER],
        exp: now + seconds,
        iat: now,
        nbf: now,
        iss: ISSUER,
        jti: randomUUID(),
        sub: `system:serviceaccount:${namespace}:${name}`,
        "kubernetes.io": { namespace, serviceaccount: { name, uid } },
      };
      const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
      const signed = `${encode({ alg: "ES256", kid, typ: "JWT" })}.${encode(claims)}`;
      const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: ENCODING });
      return { token: `${signed}.${signature.toString("base64url")}`, expires: (now + seconds) * 1000 };
    },
    review: (spec) => {
      const wanted = listOf(dig(spec, "audiences")).map(String);
      const audiences = wanted.length > 0 ? wanted : [ISSUER];
      const user = userOf(textOf(dig(spec, "token")) ?? "", audiences);
      if (typeof user === "string") return { user: {}, error: `[invalid bearer token, ${user}]` };
      return { authenticated: true, user, audiences };
    },
    keys: () => {
      const key: unknown = publicKey.export({ format: "jwk" });
      return { keys: [{ ...(isFields(key) && key), kid, use: "sig", alg: "ES256" }] };
    },
  };
}
