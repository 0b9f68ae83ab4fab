/** The dependencies of scaling. */
import type { PodHttp } from "../../../infra/pod-http.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import type { MayDownscale } from "../../budget/act/may-disrupt.ts";
import type { GroupSnapshot } from "../../model/zone.ts";
import type { ZoneTimes } from "../facts.ts";
import type { ReferenceReading } from "../snapshot.ts";
import type { PodNotifier } from "./pod-notifier.ts";
import type { References } from "./references.ts";

/** The facts that are read before a zone may shrink. */
export interface ShrinkFacts {
  readonly group: GroupSnapshot;
  readonly times: ZoneTimes;
}

/** The facts that one step of a group has read last. */
interface SharedFacts {
  facts?: ShrinkFacts;
  /** References since the last step. */
  readonly readings: Map<string, ReferenceReading>;
}

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

export interface Scaler extends Context, ScalingTools {
  /** The facts of this step of the group. */
  readonly lastRead: SharedFacts;
}
