/** The dependencies of scaling. */
import type { PodHttp } from "../../../infra/pod-http.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import type { MayDownscale } from "../../budget/act/may-disrupt.ts";
import type { PodNotifier } from "./pod-notifier.ts";
import type { References } from "./references.ts";

/** The tools that the scaling of all groups shares. */
export interface ScalingTools {
  readonly references: References;
  readonly podHttp: PodHttp;
  readonly notifier: PodNotifier;
  readonly mayDownscale: MayDownscale;
  readonly clusterDomain: string;
  /**
   * Until when, in milliseconds of the monotonic clock, zones are not written again that something pins: by the UID of
   * the zone and the replicas that it was to get.
   */
  readonly pinnedUntil: Map<string, number>;
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
}

export interface Scaler extends Context, ScalingTools {}
