/** What people do to the second namespace of a wider world. */
import { drawFrom } from "./draw.ts";
import { TWIN } from "./names.ts";
import { pause, type People } from "./person.ts";
import { twinShape } from "./wider.ts";

const STREAM = 0x7477696e;
const ACTIONS = 4;
/** A drain asks again after 5 s. */
const [DRAIN_MS, TRIES] = [5000, 6];
const SETS = `/apis/apps/v1/namespaces/${TWIN}/statefulsets`;
const PODS = `/api/v1/namespaces/${TWIN}/pods`;

/** New templates and drains of the second namespace; at last, perhaps, our processes may do nothing there any more. */
export function setTwin(people: People, seed: number): () => Promise<unknown> {
  const { schedule, shape, world } = people;
  if (!shape.twin) return () => Promise.resolve();
  const draw = drawFrom(seed ^ STREAM);
  const begun: Promise<unknown>[] = [];
  const { zones } = twinShape(shape);
  const rollOut = async (): Promise<void> => {
    const containers = [{ name: "main", image: `app:${draw.between(2, 9)}` }];
    for (const zone of zones)
      await world.ask("human", "PATCH", `${SETS}/${zone}`, { spec: { template: { spec: { containers } } } });
  };
  const drain = async (zone: string): Promise<void> => {
    const name = `${zone}-${draw.below(2)}`;
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: TWIN } };
    for (let i = 0; i < TRIES; i++) {
      const { status } = await world.ask("drainer", "POST", `${PODS}/${name}/eviction`, eviction);
      if (status !== 429) return;
      await pause(people, DRAIN_MS);
    }
  };
  for (let i = 0; i < ACTIONS; i++)
    schedule.after(draw.between(1000, shape.troubledMs), () => {
      begun.push(draw.chance(0.5) ? rollOut() : Promise.all(zones.map(drain)));
    });
  if (shape.twin === "forbids")
    schedule.after(draw.between(1000, shape.troubledMs), () => {
      world.disturb((actor, { path }) =>
        path.includes(`/namespaces/${TWIN}/`) && /^(?:reconciler|webhooks|certificates)-/.test(actor)
          ? { refusedWith: 403 }
          : undefined,
      );
    });
  return () => Promise.all(begun);
}
