/**
 * Parses the values of variables: one schema a kind, with the description of its allowed values if several variables
 * share it.
 */
import * as z from "zod";
import { parseGoDuration, parsePrometheusDuration } from "../duration.ts";
import { LABEL, PORT } from "./agent.ts";

/** One environment variable: for the parser, the error messages and the documentation. */
export interface Variable {
  readonly meaning: string;
  /** The allowed values, as the end of an error message. */
  readonly allowed: string;
  /** The default value. */
  readonly default?: string;
  /** The variable that gives the default value. */
  readonly fallback?: string;
  readonly schema: z.core.$ZodType;
}

// Long enough for every period here. It must stay below 24.8 days, above which a timer of Node overflows and fires at
// once.
const MAX_MS = 24 * 3_600_000;

export const duration = (leastMs: number) =>
  z.string().transform((text, context) => {
    const ms = parseGoDuration(text);
    if (ms !== undefined && ms > 0 && ms >= leastMs && ms <= MAX_MS) return ms;
    context.addIssue("not allowed");
    return z.NEVER;
  });

export const durationText = (least: string): string =>
  `a duration in Go's grammar (300ms, 5s, 1m30s), ${least} and at most 24h`;

const MIN_VALIDITY_MS = 3_600_000;
// selfsigned and Go support years of four digits.
const MAX_VALIDITY_MS = 100 * 365 * 24 * 3_600_000;

export const validity = z.string().transform((text, context) => {
  const ms = parsePrometheusDuration(text);
  if (ms !== undefined && ms >= MIN_VALIDITY_MS && ms <= MAX_VALIDITY_MS) return ms;
  context.addIssue("not allowed");
  return z.NEVER;
});

export const flag = {
  schema: z.enum(["true", "false"]).transform((value) => value === "true"),
  allowed: "true or false",
};

export const aboveZero = { schema: duration(0), allowed: durationText("above 0") };
export const text = z.string().optional();
export const url = z.url({ protocol: /^https?$/ }).optional();

// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
export const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

export const port = { schema: PORT, allowed: "a port; 0 takes a free one" };

export const wholeNumber = z
  .string()
  .regex(/^\d{1,9}$/)
  .transform(Number);

export const namespaces = z
  .string()
  .transform((list) => [...new Set(list.split(",").map((name) => name.trim()))])
  .refine((names) => names.every((name) => LABEL.test(name)) || names.join() === "*");

// Host names of RFC 1123, as in certificates.
export const dnsNames = z
  .string()
  .transform((list) => [...new Set(list.split(",").map((name) => name.trim()))])
  .refine((names) => names.every((name) => SUBDOMAIN.test(name)))
  .optional();

// In the form of URLs: a name, an IPv4 address or an IPv6 address in brackets, in lower case.
export const hosts = z
  .string()
  .transform((list) => [...new Set(list.split(",").map((host) => host.trim().toLowerCase()))])
  .refine((all) => all.every((host) => /^(?:[-a-z0-9_.]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/.test(host)))
  .optional();
