/** Groups of which a zone is to shrink, and what admission says to it. */
import assert from "node:assert/strict";
import type { AdmissionRequest } from "../../../functions/http/webhook.ts";
import { reviewOf, scaleReviewOf } from "../../functions/stage.ts";
import { podObjects, statefulSetObject, traitsOf, type ZoneTraits } from "../../builders/zones.ts";
import { admit, type Decision, type Facts } from "./adapter.ts";

export const NOW = Date.UTC(2026, 0, 2, 12);
export const ago = (hours: number): string => `${new Date(NOW - hours * 3_600_000).toISOString().slice(0, 19)}Z`;
export const LAST = "grafana.com/last-downscale";
export const HTTP = "grafana.com/prepare-downscale-http";

/** A zone whose pods are to be prepared. */
export const judged = ({ labels, annotations, ...traits }: ZoneTraits): ZoneTraits => ({
  ...traits,
  labels: { "grafana.com/prepare-downscale": "true", ...labels },
  annotations: { [`${HTTP}-path`]: "prepare", [`${HTTP}-port`]: "8080", ...annotations },
});

export interface More extends Partial<Facts> {
  readonly viaScale?: boolean;
  readonly review?: Partial<AdmissionRequest>;
}

/** The zones a, b, c… of the group `ingester`, the first of which is to shrink. */
export function factsOf([own = {}, ...others]: readonly (ZoneTraits | string)[], more: More = {}): Facts {
  const all = [judged(traitsOf(own)), ...others.map(traitsOf)].map((traits, i) => ({
    name: `ingester-zone-${"abcdefgh".charAt(i)}`,
    ...traits,
  }));
  return { now: NOW, statefulSets: all.map(statefulSetObject), pods: all.flatMap(podObjects), ...more };
}

/** Asks for so many replicas of the first zone. */
export async function shrink(to: number, zones: Parameters<typeof factsOf>[0], more: More = {}): Promise<Decision> {
  const facts = factsOf(zones, more);
  const [own] = facts.statefulSets;
  assert.ok(own);
  const asked = more.viaScale ? scaleReviewOf : reviewOf;
  return await admit(facts, asked(own, to, { namespace: "test", ...more.review }));
}

/** `Prepared`, or the reason and the explanation of a refusal with short names. */
export function explain({ allowed, reason, message = "" }: Decision): string | undefined {
  const [, why] = /is not allowed because (.*)$/.exec(message) ?? [];
  assert.equal(allowed, why === undefined, message);
  return why === undefined ? reason : `${reason}: ${why.replaceAll("ingester-", "")}`;
}
