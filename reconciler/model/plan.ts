/** What is left of a rollout. */

/** A zone with pods to replace, or to be recorded as finished. */
export interface PlannedZone {
  readonly zone: string;
  /** Outdated pods. */
  readonly count: number;
  /** The next of them by name, as far as the pods were read. */
  readonly pods: readonly string[];
  /** How many are replaced at once, at most. */
  readonly atOnce: number;
  /** How long a pod of the zone took to become ready, in milliseconds; undefined if none shows it. */
  readonly msPerPod: number | undefined;
}
