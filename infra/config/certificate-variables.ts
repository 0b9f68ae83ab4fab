/** The variables of the webhooks' certificate. */
import * as z from "zod";
import { dnsNames, flag, SUBDOMAIN, type Variable, validity } from "./variable-schemas.ts";

export interface CertificateConfiguration {
  /** False if another tool makes the certificate. */
  readonly selfSigned: boolean;
  readonly secretName: string;
  readonly dnsNames: readonly string[];
  readonly organization: string;
  readonly validityMs: number;
  /** Whether the CA bundle is injected into webhook configurations; only our own CA ever is. */
  readonly inject: boolean;
}

export const CERTIFICATE_VARIABLES = {
  SERVER_TLS_SELF_SIGNED_CERT_ENABLED: {
    ...flag,
    meaning: "Whether Zonewise makes the certificate; with false you bring your own",
    default: "true",
  },
  SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME: {
    schema: z.string().regex(SUBDOMAIN),
    meaning: "Name of the Secret with the certificate, its key and the CA",
    allowed: "a DNS-1123 subdomain",
    default: "rollout-operator-self-signed-certificate",
  },
  SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME: {
    schema: dnsNames,
    meaning: "The names that the certificate is for; when it is not set, rollout-operator.KUBERNETES_NAMESPACE.svc",
    allowed: "DNS names separated by commas",
  },
  SERVER_TLS_SELF_SIGNED_CERT_ORG: {
    schema: z.string().regex(/^[\x20-\x7e]{1,64}$/),
    meaning: "The organization in the certificate",
    allowed: "1 to 64 printable ASCII characters",
    default: "Zonewise",
  },
  SERVER_TLS_SELF_SIGNED_CERT_EXPIRATION: {
    schema: validity,
    meaning: "Validity of a certificate; its successor is made after two thirds of it",
    allowed: "a duration in Prometheus' grammar (365d, 12w, 36h), at least 1h and at most 100y",
    default: "365d",
  },
  WEBHOOKS_UPDATE_CA_BUNDLE: {
    ...flag,
    meaning: "Whether the webhook configurations that are labelled for it get the CA",
    default: "true",
  },
} as const satisfies Readonly<Record<string, Variable>>;
