/** The certificate of rollout-operator. */
import { createPrivateKey } from "node:crypto";
import { generate } from "selfsigned";
import { SERVICE } from "./stage.ts";

type UpstreamSecret = {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
};

/** A Secret in upstream's form (§7.1, §7.2): RSA, its key in PKCS#1, three keys, one name. */
export async function upstreamSecret(now: Date, days = 365): Promise<UpstreamSecret> {
  const organization = { name: "organizationName", value: "Grafana Labs" };
  const rsa = {
    keyType: "rsa",
    keySize: 2048,
    algorithm: "sha256",
    notBeforeDate: now,
    notAfterDate: new Date(now.getTime() + days * 86_400_000),
  } as const;
  const ca = await generate([organization], {
    ...rsa,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, critical: true },
    ],
  });
  const leaf = await generate([{ name: "commonName", value: "rollout-operator" }, organization], {
    ...rsa,
    ca: { key: ca.private, cert: ca.cert },
    extensions: [
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true, clientAuth: true },
      { name: "subjectAltName", altNames: [{ type: 2, value: SERVICE }] },
    ],
  });
  const key = createPrivateKey(leaf.private).export({ type: "pkcs1", format: "pem" }).toString();
  return { ca: `${ca.cert}\n`, cert: `${leaf.cert}\n`, key };
}
