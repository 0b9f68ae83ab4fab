/**
 * `/mutate-sts-plus-v1alpha1-phasedrollout`: sets the defaults of PhasedRollouts if the definition has none, as that of
 * the original (§16). Given values stay, also a 0.
 */
import * as z from "zod";
import type { Answer, Webhook } from "../http/webhook.ts";

const DEFAULTS = { initialDelaySeconds: 60, periodSeconds: 60, successThreshold: 3 } as const;

/** The definition's schema refuses a spec of any other form, after this webhook. */
const CHECKED = z.object({ spec: z.object({ check: z.looseObject({}) }) });

export function createPhasedDefaults(): Webhook {
  return {
    name: "phasedDefaults",
    paths: ["/mutate-sts-plus-v1alpha1-phasedrollout"],
    handle: async ({ object }) => {
      const check = CHECKED.safeParse(object).data?.spec.check;
      const patch = check && patchOf(check);
      return { allowed: true, reason: patch ? "Completed" : "Complete", ...(patch && { patch }) };
    },
    onFault: () => ({ allowed: true, reason: "Fault" }),
  };
}

function patchOf(check: Readonly<Record<string, unknown>>): Answer["patch"] {
  const missing = Object.entries(DEFAULTS).filter(([field]) => check[field] === undefined || check[field] === null);
  return missing.length > 0
    ? missing.map(([field, value]) => ({ op: "add", path: `/spec/check/${field}`, value }))
    : undefined;
}
