/** Who deletes pods: people, with and without the annotation that lets them, and controllers, which nothing may stop. */
import type { KubeObject } from "../../emulator/store.ts";
import { CONTROLLERS } from "../accounts.ts";
import { NAMESPACE } from "../names.ts";
import { type Action, insist, pause, type People, PODS, without } from "../person.ts";
import { BY_HAND, CONFIGURATION } from "./shape.ts";

const PLURAL = "validatingwebhookconfigurations";
const MAX_ATTEMPTS = 4;

const podsOf = ({ world }: People, zone: string): readonly KubeObject[] =>
  world.store.list("pods", NAMESPACE).filter(({ metadata }) => metadata.labels?.["name"] === zone);
const anyPod = (people: People): KubeObject | undefined => {
  const pods = people.shape.zones.flatMap((zone) => podsOf(people, zone));
  return pods.length > 0 ? people.draw.of(pods) : undefined;
};

/** Whoever is refused tries again a few times. */
async function deletePod(people: People, name: string): Promise<void> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS && people.isTroubled(); attempt++) {
    const { status } = await people.world.ask("human", "DELETE", `${PODS}/${name}`);
    if (status < 400 || status === 404) return;
    await pause(people, people.draw.between(1000, 15_000));
  }
}

/** What people and controllers do where the webhook is registered. */
export const deletionActions: Readonly<Record<string, Action>> = {
  /** `kubectl delete pod`, in several zones at once. */
  deletePods: async (people) => {
    const { draw, shape } = people;
    const names = shape.zones.flatMap((zone) => {
      const pods = podsOf(people, zone);
      return pods.length > 0 && draw.chance(0.8) ? [draw.of(pods).metadata.name] : [];
    });
    await Promise.all(names.map((name) => deletePod(people, name)));
  },
  /** As a collection, of one zone or of all. */
  deleteSelected: (people) => {
    const { draw, shape, world } = people;
    const label = draw.chance(0.5) ? `name=${draw.of(shape.zones)}` : "app=ingester";
    return world.ask("human", "DELETE", `${PODS}?labelSelector=${encodeURIComponent(label)}`);
  },
  /** On purpose; who has misread the page writes something else, and is refused where the budget refuses. */
  deleteByHand: async (people) => {
    const pod = anyPod(people);
    if (!pod) return;
    const { name } = pod.metadata;
    await insist(people, `${PODS}/${name}`, {
      metadata: { annotations: { [BY_HAND]: people.draw.of(["true", "true", "yes"]) } },
    });
    await deletePod(people, name);
  },
  /** Whoever only tries tries all: nothing goes. */
  tryDeletion: async (people) => {
    const { draw, shape, world } = people;
    const [query, body] = draw.chance(0.5) ? ["?dryRun=All", undefined] : ["", { dryRun: ["All"] }];
    const pods = shape.zones.flatMap((zone) => podsOf(people, zone));
    await Promise.all(
      pods.map(({ metadata }) => world.ask("human", "DELETE", `${PODS}/${metadata.name}${query}`, body)),
    );
  },
  /** Controllers delete pods for reasons of their own; a kubelet ends a deletion. */
  takePods: async (people) => {
    const { draw, world } = people;
    for (let i = draw.between(1, 4); i > 0; i--) {
      const actor = draw.of(Object.keys(CONTROLLERS));
      const pod = anyPod(people);
      if (!pod) return;
      const body = actor === "kubelet" ? { gracePeriodSeconds: 0 } : { preconditions: { uid: pod.metadata.uid } };
      await world.ask(actor, "DELETE", `${PODS}/${pod.metadata.name}`, body);
      await pause(people, draw.between(1, 3000));
    }
  },
  /** Somebody removes the webhook, and applies it again. */
  removeGuard: (people) =>
    without(people, [PLURAL, CONFIGURATION], () => pause(people, people.draw.between(1, 30_000))),
};
