/** What docs/reference/webhooks.md says of each target of functions-framework; the generator names a missing one. */
export const TARGET_TEXTS: Readonly<Record<string, readonly [paths: string, does: string, fault: string]>> = {
  podEviction: [
    "`/admission/mutate-pod-eviction`; validating, as the original registers it: `/admission/pod-eviction`, `/pods/eviction`",
    "Decides by the disruption budget, reserves, and binds the eviction to the UID of the pod that was checked. Registered as validating it cannot bind: an eviction by name is then allowed once in 15 s",
    "denies: 429 for now, 400 for what is wrong",
  ],
  podDeletion: [
    "`/admission/pod-deletion` (opt-in)",
    "The same for [a pod that somebody deletes](../guides/budgets.md#guard-deletions-too)",
    "denies likewise",
  ],
  noDownscale: [
    "`/admission/no-downscale`",
    "Refuses a downscale of an object with the label. Admission policies judge first ([why both](../guides/scaling.md#refuse-downscales))",
    "allows, with a warning",
  ],
  prepareDownscale: [
    "`/admission/prepare-downscale`",
    "Waits for the group's other zones, sends POST to the pods that go, records the time; one zone of a group at a time",
    "denies",
  ],
  zpdbValidation: ["`/admission/zpdb-validation`", "Refuses an invalid budget", "denies"],
  raisePartition: [
    "`/admission/raise-partition`",
    "[Keeps the partition](../guides/phased-rollouts.md#what-others-write) of a PhasedRollout's StatefulSet, or raises it",
    "allows; the reconciler raises it",
  ],
  phasedDefaults: [
    "`/mutate-sts-plus-v1alpha1-phasedrollout`",
    "Completes times and threshold of a check, for the original's definition",
    "allows; the reconciler has the same defaults",
  ],
  phasedValidation: [
    "`/validate-sts-plus-v1alpha1-phasedrollout`",
    "Refuses URLs and expressions of PhasedRollouts and gates that can never be asked",
    "allows, with a warning",
  ],
  reconcile: [
    "HTTP POST",
    "One tick of the reconciler, for clusters that trigger by [events](../../knative/README.md#events)",
    "",
  ],
  reconcileEvent: ["CloudEvent (`--signature-type=cloudevent`)", "The same", ""],
  status: ["HTTP GET", "[The status page](../operate/on-call.md#the-status-page)", ""],
};
