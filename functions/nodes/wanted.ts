/** What the stored shadow wants of its node. */
import type { CustomObject } from "../../infra/kubernetes/resources.ts";
import { shadowSpec, type ShadowStatus, shadowStatus, type State } from "../../reconciler/nodes/shadow.ts";

export const readShadowStatus = ({ status }: CustomObject): ShadowStatus | undefined =>
  shadowStatus.safeParse(status).data;

export const wantedState = ({ spec }: CustomObject): State | undefined => shadowSpec.safeParse(spec).data?.state;

/** True between the staged update and its reboot: at no other time may an agent have its node drained. */
export function isDrainWanted(shadow: CustomObject): boolean {
  return (
    wantedState(shadow) === "RebootedIntoUpdate" &&
    readShadowStatus(shadow)?.current_state === "StagedAndPerformedUpdate"
  );
}
