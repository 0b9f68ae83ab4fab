/** Calls of the eviction webhook over a stage with a budget. */
import type { AdmissionRequest, Answer } from "../../../functions/http/webhook.ts";
import { createPodEviction } from "../../../functions/eviction/pod-eviction.ts";
import type { Metrics } from "../../../infra/metrics/metrics.ts";
import { startProcess } from "../../reconciler/budget-stage.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { review } from "../../builders/reviews.ts";

const MUTATING = "/admission/mutate-pod-eviction";
export const VALIDATING = "/admission/pod-eviction";

export const reviewOf = (more: Partial<AdmissionRequest> = {}): AdmissionRequest =>
  review("Eviction", "ingester-zone-a-0", more);

let processes = 0;

/** Calls the webhook of a new process. */
export async function callWebhook(
  stage: Stage,
  more: Partial<AdmissionRequest> = {},
  path = MUTATING,
): Promise<{ answer: Answer; metrics: Metrics }> {
  const { reserver, metrics } = startProcess(stage, `process-${++processes}`);
  const webhook = createPodEviction({ reserver, metrics: metrics.budgets });
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const answer = await webhook.handle(reviewOf(more), {
    path,
    signal: new AbortController().signal,
    deadlineAt: stage.clock.monotonic() + 2000,
    log,
  });
  return { answer, metrics };
}

export const eviction = (deleteOptions?: object | null): object => ({
  apiVersion: "policy/v1",
  kind: "Eviction",
  metadata: {},
  ...(deleteOptions !== undefined && { deleteOptions }),
});

export const uidOf = (stage: Stage, pod: string): string =>
  stage.emulator.store.get("pods", "default", pod)?.metadata.uid ?? "";
