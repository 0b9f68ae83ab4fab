/** What the installation refuses, each as a kubectl command and the words of its answer. */
import type { RealStage } from "./stage.ts";

interface Refusal {
  readonly name: string;
  readonly args: readonly string[];
  readonly input?: object;
  readonly says: RegExp;
}

const budget = (spec: object): object => ({
  apiVersion: "rollout-operator.grafana.com/v1",
  kind: "ZoneAwarePodDisruptionBudget",
  metadata: { name: "other" },
  spec: { selector: { matchLabels: { app: "other" } }, ...spec },
});
const replicas = (count: number): string => JSON.stringify({ spec: { replicas: count } });

/** Zone b is labelled no-downscale, and zone c prepare-downscale, to a port that nobody listens on. */
export const REFUSALS: readonly Refusal[] = [
  {
    name: "a downscale of the object, by the policy",
    args: ["patch", "statefulset", "zone-b", "-p", replicas(2)],
    says: /ValidatingAdmissionPolicy 'no-downscale.* from 3 to 2 replicas is not allowed/,
  },
  {
    name: "a downscale through the scale, by the policy or the webhook",
    args: ["scale", "statefulset", "zone-b", "--replicas=2"],
    says: /(ValidatingAdmissionPolicy|admission webhook) ['"]no-downscale-.* denied (the )?request: downscale of .* from 3 to 2 replicas is not allowed/,
  },
  {
    name: "a downscale whose pods cannot be prepared",
    args: ["scale", "statefulset", "zone-c", "--replicas=2"],
    says: /admission webhook "prepare-downscale-.*" denied the request/,
  },
  {
    name: "a budget that the definition's rules refuse",
    args: ["create", "-f", "-"],
    input: budget({ maxUnavailable: -1 }),
    says: /is invalid|denied the request/,
  },
  {
    name: "a budget that only the webhook can judge",
    args: ["create", "-f", "-"],
    input: budget({ podNamePartitionRegex: "zone-[a-z]-([0-9]+)", podNameRegexGroup: 2 }),
    says: /admission webhook "zpdb-validation-.*" denied the request/,
  },
];

/** Labels the zones for the refusals; resolves with what takes the labels off again. */
export async function labelZones({ patchZone }: RealStage): Promise<() => Promise<void>> {
  const label = async (noDownscale: string | null, prepare: string | null, port: string | null): Promise<void> => {
    await patchZone("zone-b", { metadata: { labels: { "grafana.com/no-downscale": noDownscale } } });
    const annotations = {
      "grafana.com/prepare-downscale-http-path": prepare && "prepare",
      "grafana.com/prepare-downscale-http-port": port,
    };
    await patchZone("zone-c", { metadata: { labels: { "grafana.com/prepare-downscale": prepare }, annotations } });
  };
  await label("true", "true", "1");
  return () => label(null, null, null);
}
