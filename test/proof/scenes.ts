/** What is done to the database: by Zonewise, by drains, by people, and by those who kill Zonewise meanwhile. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Container, killContainer, listContainers } from "../cluster/real-node/containers.ts";
import { FUNCTIONS, RECONCILER } from "../cluster/real-node/installation.ts";
import { evict } from "../cluster/stage/evict.ts";
import { deletions } from "../cluster/stage/invariants.ts";
import { until } from "../cluster/stage/until.ts";
import { GROUP, type Proof, REPLICAS, ZONES } from "./stage.ts";

const MAX_MS = 300_000;
/** Milliseconds after which `kubectl drain` asks again for a pod that was refused. */
const RETRY_MS = 5000;
/** For how long a broken template stays: until several ticks have looked at it. */
const BROKEN_MS = 15_000;

const countDeletions = ({ timeline }: Proof): number =>
  deletions(timeline.entries.filter(({ group }) => group === GROUP)).length;

/** Once `count` more servers have been deleted: kills the reconciler that runs, and one of the functions. */
export async function killAfter(proof: Proof, count: number): Promise<void> {
  const before = countDeletions(proof);
  await proof.timeline.until(`${count} servers are deleted`, () => countDeletions(proof) >= before + count, MAX_MS);
  const place = { call: proof.call, namespace: proof.namespace };
  const [functions] = await listContainers(place, FUNCTIONS);
  if (functions) await killContainer(functions);
  // One that is listed may have ended: a run hands over to the next one every minute.
  await until("the reconciler is killed", async () => {
    const running: Container[] = await listContainers(place, RECONCILER);
    const kills = await Promise.allSettled(running.map(killContainer));
    return kills.some(({ status }) => status === "fulfilled");
  });
}

let templates = 0;
/** A new template for all zones at once, as `kubectl apply` gives it. */
export const changeTemplates = async ({ installation }: Proof): Promise<void> =>
  void (await installation.kubectl([
    "set",
    "env",
    "statefulset",
    "-l",
    `rollout-group=${GROUP}`,
    `ROLLOUT=${++templates}`,
  ]));

export const rollOut = (proof: Proof): Promise<unknown> =>
  Promise.all([changeTemplates(proof).then(() => proof.settled()), killAfter(proof, 2)]);

/**
 * Drains of a node of each zone, one after the other in each zone, all three zones at once, until `count` servers have been
 * evicted. As the machine has one node, these are `kubectl drain`'s requests in place of `kubectl drain`: all pods of the
 * zone at once, each again after 5 s if it was refused, until they are gone.
 */
export async function drain(proof: Proof, count: number): Promise<void> {
  let evicted = 0;
  const { timeline } = proof;
  const evictPod = async (pod: string, uid: string): Promise<void> => {
    for (;;) {
      if (evicted >= count || timeline.pods.get(pod)?.uid !== uid) return;
      const { code } = await evict(proof, pod);
      if (code === 201) break;
      if (code === 404) return;
      // 429; or 500 while a function is dead: kubectl ends then, and the operator calls it again.
      await sleep(RETRY_MS);
    }
    evicted++;
    await timeline.until(`${pod} is gone`, () => timeline.pods.get(pod)?.uid !== uid, MAX_MS);
  };
  const drainZone = async (zone: string): Promise<void> => {
    while (evicted < count) {
      const pods = [...timeline.pods.values()].filter((pod) => pod.zone === zone && pod.state === "ready");
      await Promise.all(pods.map(({ pod, uid }) => evictPod(pod, uid)));
      // To the zone's next node; the drains of other zones, which were refused meanwhile, have their turn.
      await sleep(RETRY_MS);
    }
  };
  await Promise.all(ZONES.map(drainZone));
}

export const drainAndKill = (proof: Proof, count: number): Promise<unknown> =>
  Promise.all([drain(proof, count), killAfter(proof, Math.floor(count / 4))]);

/** A template whose servers end at once; then the one before. */
export async function breakAndCure(proof: Proof): Promise<void> {
  const setConfig = (file: string): Promise<unknown> =>
    Promise.all(
      ZONES.map((zone) => {
        const patch = [
          { op: "replace", path: "/spec/template/spec/containers/0/args", value: ["--config", `/etc/nats/${file}`] },
        ];
        return proof.installation.kubectl(["patch", "statefulset", zone, "--type=json", "-p", JSON.stringify(patch)]);
      }),
    );
  await Promise.all([setConfig("missing.conf"), killAfter(proof, REPLICAS)]);
  await sleep(BROKEN_MS);
  await setConfig("nats.conf");
}

/** From two servers a zone to three and back, by the leader; what a person does for it, examples/nats says. */
export async function scale(proof: Proof): Promise<void> {
  const { installation, load, database } = proof;
  const setReplicas = (replicas: number): Promise<string> =>
    installation.kubectl(["scale", "statefulset", ZONES[0], `--replicas=${replicas}`]);
  await setReplicas(REPLICAS + 1);
  await proof.settled(REPLICAS + 1);
  // They are placed on the new servers, too: those have to hand them over.
  await load.grow(3);
  await load.acknowledges();
  const shrink = async (): Promise<void> => {
    // It is refused until the leader's server has handed over its streams; the person asks again.
    await until("the leader is scaled", async () => (await setReplicas(REPLICAS)) !== "", MAX_MS);
    await proof.settled();
  };
  await Promise.all([shrink(), killAfter(proof, 1)]);
  await database.forget(ZONES.map((zone) => `${zone}-${REPLICAS}`));
}

/** Without Zonewise, Kubernetes replaces the pods of each StatefulSet by itself. */
export async function rollOutByKubernetes(proof: Proof): Promise<void> {
  for (const zone of ZONES)
    await proof.installation.kubectl([
      "patch",
      "statefulset",
      zone,
      "-p",
      '{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}',
    ]);
  await changeTemplates(proof);
}

/** One core budget a zone, as there is none for several. */
export async function createCoreBudgets({ call, namespace }: Proof): Promise<void> {
  for (const zone of ZONES)
    await call("POST", `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`, {
      metadata: { name: zone },
      spec: {
        maxUnavailable: 1,
        selector: { matchLabels: { "rollout-group": GROUP, zone: zone.replace("nats-", "") } },
      },
    });
}
