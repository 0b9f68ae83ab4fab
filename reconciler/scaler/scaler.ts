/** The dependencies of scaling. */
import type { Clock } from "../../infra/clock.ts";
import type { PodHttp } from "../../infra/pod-http.ts";
import type { Actor } from "../../infra/kubernetes/actor.ts";
import type { PodNotifier } from "./pod-notifier.ts";
import type { References } from "./references.ts";

export interface Scaler extends Actor {
  readonly references: References;
  readonly podHttp: PodHttp;
  readonly notifier: PodNotifier;
  readonly clusterDomain: string;
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /** Ends requests to pods. */
  readonly stop: AbortSignal;
}
