/**
 * `/admission/raise-partition`: another template of a StatefulSet that a PhasedRollout manages raises the partition to the replicas in the same write
 * (§16.4). Without it, pods from the partition on are replaced before the reconciler has seen the template. On Kubernetes 1.36 and later a policy does the
 * same without a call. Fails open: the reconciler raises the partition as well.
 */
import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import type { Answer, Webhook } from "../http/webhook.ts";

const SET = z.object({
  spec: z.object({
    replicas: z.number().nullish(),
    template: z.unknown(),
    updateStrategy: z
      .object({ type: z.string().nullish(), rollingUpdate: z.object({ partition: z.number().nullish() }).nullish() })
      .nullish(),
  }),
});

const MANAGED = SET.extend({ metadata: z.object({ annotations: z.object({ [ANNOTATIONS.phasedRollout]: z.string() }) }) });

export function createRaisePartition(): Webhook {
  return {
    name: "raisePartition",
    paths: ["/admission/raise-partition"],
    handle: async ({ operation, object, oldObject }) => {
      const [now, before] = [SET.safeParse(object).data, MANAGED.safeParse(oldObject).data];
      if (operation !== "UPDATE" || !now || !before) return { allowed: true, reason: "NotManaged" };
      if (isDeepStrictEqual(now.spec.template, before.spec.template)) return { allowed: true, reason: "SameTemplate" };
      const patch = raise(now.spec);
      return { allowed: true, reason: patch ? "Raised" : "Guarded", ...(patch && { patch }) };
    },
    onFault: () => ({ allowed: true, reason: "Fault" }),
  };
}

/** Undefined if no pod is free to be replaced. OnDelete has no partition. */
function raise({ replicas, updateStrategy }: z.infer<typeof SET>["spec"]): Answer["patch"] {
  const value = replicas ?? 1;
  const { type, rollingUpdate } = updateStrategy ?? {};
  if ((type ?? "RollingUpdate") !== "RollingUpdate" || (rollingUpdate?.partition ?? 0) >= value) return undefined;
  if (rollingUpdate) return [{ op: "add", path: "/spec/updateStrategy/rollingUpdate/partition", value }];
  return [{ op: "add", path: "/spec/updateStrategy", value: { type: "RollingUpdate", rollingUpdate: { partition: value } } }];
}
