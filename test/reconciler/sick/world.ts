/**
 * Groups whose pods are sick in every way that Kubernetes knows, on a small cluster with its controllers and kubelets.
 */
import { createSmallCluster, type SmallCluster, type Template } from "../small-cluster.ts";
import { MIRROR } from "../scaling/mirror-stage.ts";

/** Why pods of a template serve nothing, or only in part. Of `limping` pods one container works. */
const TEMPLATES = {
  crashing: { ailment: "crashing" },
  unpullable: { image: "registry.invalid/app" },
  unschedulable: { unschedulable: true },
  neverReady: { ailment: "failed" },
  limping: { ailment: "limping" },
} as const satisfies Record<string, Template>;
export type Sickness = keyof typeof TEMPLATES;
export const SICKNESSES = Object.keys(TEMPLATES) as Sickness[];

export interface SickWorld {
  readonly cluster: SmallCluster;
  readonly names: readonly string[];
  /** What pods of a template suffer from, by its number. */
  readonly templates: (Sickness | undefined)[];
  /** The number of each zone's template. */
  readonly wanted: Map<string, number>;
  /** What mirroring zones are to have. */
  reference: number;
}

export const MINUTE = 60_000;

export interface Shape {
  readonly sizes: readonly number[];
  readonly maxUnavailable: number;
  readonly scaling: "none" | "followers" | "mirrors";
}

const templateOf = (number: number, sickness: Sickness | undefined): Template => {
  const { image = "app", ...traits }: Template = sickness === undefined ? {} : TEMPLATES[sickness];
  return { image: `${image}:${number}`, ...traits };
};

export function createSickWorld(
  { sizes, maxUnavailable, scaling }: Shape,
  firstSickness: Sickness | undefined,
): SickWorld {
  const cluster = createSmallCluster();
  const reference = sizes[0] ?? 1;
  const names = sizes.map((_, i) => `ingester-zone-${"abcd".charAt(i)}`);
  for (const [i, name] of names.entries()) {
    const annotations = {
      "rollout-max-unavailable": String(maxUnavailable),
      ...(scaling === "followers" && i > 0 && { "grafana.com/rollout-downscale-leader": "ingester-zone-a" }),
      ...(scaling === "mirrors" && MIRROR),
    };
    const replicas = scaling === "none" ? (sizes[i] ?? 1) : reference;
    const selected = { "rollout-group": "ingester" };
    cluster.addSet({ name, replicas, annotations, selected }, templateOf(0, firstSickness));
  }
  cluster.settle();
  const wanted = new Map(names.map((name) => [name, 0]));
  return { cluster, names, templates: [firstSickness], wanted, reference };
}

export const templateOfZone = ({ wanted, templates }: SickWorld, name: string): Sickness | undefined =>
  templates[wanted.get(name) ?? 0];

/** A new template; its number. */
export const addTemplate = ({ templates }: SickWorld, sickness: Sickness | undefined): number =>
  templates.push(sickness) - 1;

export function giveTemplate({ cluster, templates, wanted }: SickWorld, name: string, number: number): void {
  cluster.changeTemplate(name, templateOf(number, templates[number]));
  wanted.set(name, number);
}

/** The StatefulSet controllers. True if anything changed. */
export const control = ({ cluster, names }: SickWorld): boolean =>
  names.map((name) => cluster.sync(name)).includes(true);

/** The kubelet of one pod: it ends, starts, or becomes ready, if it can. True if it did. */
export function moveKubelet({ cluster }: SickWorld, name: string): boolean {
  const before = cluster.lifeOf(cluster.pod(name));
  cluster.runOut(name);
  return cluster.lifeOf(cluster.pod(name)) !== before;
}

export const podNames = ({ cluster, names }: SickWorld): string[] =>
  names.flatMap((name) => cluster.podsOf(name).map(({ metadata }) => metadata.name));

export const settleKubelets = (world: SickWorld): boolean =>
  podNames(world)
    .map((name) => moveKubelet(world, name))
    .includes(true);
