/** Reads the Evictions of Kubernetes' declarative eviction API in which the reconciler takes part. */
import { hasCode } from "../../infra/errors.ts";
import { declaredEvictions } from "../../infra/kubernetes/custom-resources.ts";
import { type Eviction, OURS, readEviction } from "../../reconciler/evictions/eviction.ts";
import { readAll } from "../../reconciler/snapshot/gather.ts";
import type { Session } from "../session.ts";

/** The Evictions of the namespace; none if the API server does not know the kind, or if the caller may not read it. */
export async function gatherEvictions(session: Session, namespace: string): Promise<readonly Eviction[]> {
  const query = { namespace, labelSelector: OURS };
  const list = await readAll({ resource: declaredEvictions, query, read: readEviction }, session).catch(leaveOut);
  return (list?.items ?? []).filter((one) => one !== undefined);
}

function leaveOut(error: unknown): undefined {
  if (!hasCode(error, "Forbidden", "NotFound")) throw error;
  return undefined;
}
