/**
 * The webhooks' certificate: whether API server and webhook server understand each other.
 *
 *   Secret --the kubelet's next read--> what a server shows <--TLS, by the bundle of the configuration--> API server
 */
import { X509Certificate } from "node:crypto";
import { generateCertificates } from "../../../infra/certs/act/generate.ts";
import { dig, type Draft, listOf, textOf } from "../../emulator/objects.ts";
import type { Store } from "../../emulator/store.ts";
import type { Draw } from "../draw.ts";
import { NAMESPACE } from "../names.ts";
import type { Schedule } from "../schedule.ts";
import { make } from "../../builders/objects.ts";

export const SECRET = "rollout-operator-self-signed-certificate";
const SERVER_NAME = `rollout-operator.${NAMESPACE}.svc`;
/** The kubelet looks for changes of a mounted Secret once a minute. */
const KUBELET_MS = 60_000;

/** As the world begins: what of the certificate's hour is over, or no certificate. */
export type CertificateShape = { readonly spentMinutes: number } | "missing";

export const drawCertificate = (draw: Draw): CertificateShape =>
  draw.chance(0.3) ? "missing" : { spentMinutes: draw.of([1, 37, 39, 58, 61]) };

/** The Secret that an earlier run of the job made; undefined if none did. */
export async function secretObject(shape: CertificateShape, now: number): Promise<Draft | undefined> {
  if (shape === "missing") return undefined;
  const options = { dnsNames: [SERVER_NAME], organization: "Zonewise", validityDays: 1 / 24 };
  const made = await generateCertificates({ ...options, now: new Date(now - shape.spentMinutes * 60_000) });
  const { caPem: ca, certPem: cert, keyPem: key } = made;
  const pems = { ca, cert, key, "ca.crt": ca, "tls.crt": cert, "tls.key": key };
  const data = Object.fromEntries(
    Object.entries(pems).map(([name, pem]) => [name, Buffer.from(pem).toString("base64")]),
  );
  return make("Secret", SECRET, { namespace: NAMESPACE, data });
}

export interface Mount {
  /** The certificate that a server shows; undefined before its Secret was there. */
  readonly shown: () => X509Certificate | undefined;
}

/** What a server's kubelet gives it of the Secret: at once as it starts, later with its next read. */
export function mountSecret(store: Store, schedule: Schedule, delayMs: () => number): Mount {
  let shown: X509Certificate | undefined;
  const look = (): void => {
    const pem = textOf(dig(store.get("secrets", NAMESPACE, SECRET), "data", "tls.crt"));
    if (pem !== undefined) shown = readCertificate(pem) ?? shown;
  };
  look();
  store.subscribe(({ resource, object }) => {
    if (resource === "secrets" && object.metadata.name === SECRET) schedule.after(delayMs(), look);
  });
  return { shown: () => shown };
}

/** A server goes on with the certificate that it had, if it cannot read another. */
function readCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(Buffer.from(pem, "base64"));
  } catch {
    return undefined;
  }
}

export const kubeletDelay = (draw: Draw): number => draw.between(100, KUBELET_MS);

const verified = new WeakMap<X509Certificate, Map<string, boolean>>();

/** Why the API server does not take this certificate for that of the server, as it says it; undefined if it does. */
export function whyNotTrusted(
  shown: X509Certificate | undefined,
  ca: Buffer | string | undefined,
  now: number,
): string | undefined {
  if (!shown) return "connect: connection refused";
  const bundle = ca?.toString() ?? "";
  const known = verified.get(shown) ?? new Map<string, boolean>();
  verified.set(shown, known);
  const isSigned = known.get(bundle) ?? isSignedBy(shown, bundle);
  known.set(bundle, isSigned);
  if (!isSigned) return "tls: failed to verify certificate: x509: certificate signed by unknown authority";
  return shown.validToDate.getTime() < now || shown.validFromDate.getTime() > now
    ? "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
    : undefined;
}

function isSignedBy(leaf: X509Certificate, bundle: string): boolean {
  return (bundle.match(/-----BEGIN[^]*?-----END CERTIFICATE-----/g) ?? []).some((pem) => {
    const ca = new X509Certificate(pem);
    return leaf.checkIssued(ca) && leaf.verify(ca.publicKey);
  });
}

export const CONFIGURATIONS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"].map(
  (plural) => `${plural}.admissionregistration.k8s.io`,
);
/** Configurations whose bundle does not fit what the servers show, in words. */
export function untrusted(
  store: Pick<Store, "list">,
  shown: readonly (X509Certificate | undefined)[],
  now: number,
): string[] {
  const all = CONFIGURATIONS.flatMap((kind) => store.list(kind));
  return all.flatMap((configuration) => {
    const bundle = textOf(dig(listOf(configuration["webhooks"])[0], "clientConfig", "caBundle")) ?? "";
    const why = shown.map((one) => whyNotTrusted(one, Buffer.from(bundle, "base64"), now)).find((one) => one);
    return why === undefined ? [] : [`${configuration.metadata.name}: ${why}`];
  });
}

/** An hour: the shortest that is allowed. */
export const CERTIFICATE_ENVIRONMENT = {
  SERVER_TLS_SELF_SIGNED_CERT_ENABLED: "true",
  SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION: "1h",
};
