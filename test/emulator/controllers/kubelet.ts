/**
 * The kubelets: pods become Running, Ready and gone as their `sim/*` annotations say (see the README of the emulator's real counterpart):
 *
 *   sim/ready-after-ms  from bound to Ready, 300      sim/ready  "false" keeps it not Ready, followed at any time
 *   sim/exit-after-ms   from deletion to gone, 100    sim/crash  "true" makes its containers wait in CrashLoopBackOff
 *
 *   bound --report--> Running, not Ready --ready-after-ms--> Ready <--sim/ready--> not Ready      deleted --exit-after-ms--> gone
 */
import type { Clock } from "../clock.ts";
import { isTrue, timestamp } from "../objects.ts";
import type { Store } from "../store.ts";
import { hasEnded, isTerminating, type Pod } from "./objects.ts";
import { find, keyOf, type Controller } from "./queue.ts";

const REACTION_MS = 1;
const READY_AFTER_MS = 300;
const EXIT_AFTER_MS = 100;
const CRASHING = { waiting: { reason: "CrashLoopBackOff", message: "simulated crash" } };

export function kubelets(store: Store, clock: Clock): Controller {
  let lastIp = 0;
  /** What a kubelet knows of a pod that is new to it: times in ms since the epoch, and the facts of its last report. */
  const meet = (uid: string) => {
    lastIp += 1;
    return { uid, ip: `10.244.${(lastIp >> 8) & 255}.${lastIp & 255}`, upAt: Infinity, goneAt: Infinity, reported: "" };
  };
  const known = new Map<string, ReturnType<typeof meet>>();
  return {
    reactionMs: REACTION_MS,
    concerns: ({ resource, object }) => (resource === "pods" ? [keyOf(object)] : []),
    handle: (key) => {
      const pod = find(store, "pods", key) as Pod | undefined;
      if (!pod) return void known.delete(key);
      const now = clock.now();
      const { namespace, name, uid } = pod.metadata;
      const before = known.get(key);
      const state = before?.uid === uid ? before : meet(uid);
      known.set(key, state);
      if (isTerminating(pod)) {
        // The pod keeps its last status, Ready included, until it is gone.
        state.goneAt = Math.min(state.goneAt, now + waitOf(pod, "exit-after-ms", EXIT_AFTER_MS));
        if (state.goneAt > now) return state.goneAt - now;
        return void store.remove("pods", namespace, name, { gracePeriodSeconds: 0 });
      }
      if (!pod.spec.nodeName || hasEnded(pod)) return;
      const crashing = annotation(pod, "crash") === "true";
      const isMeantToBeUp = !crashing && annotation(pod, "ready") !== "false";
      if (!isMeantToBeUp) state.upAt = Infinity;
      const gatesOpen = (pod.spec.readinessGates ?? []).every((gate) => isTrue(pod, gate.conditionType));
      const facts = { up: state.upAt <= now, gatesOpen, crashing };
      // A kubelet reports its own news; what others write to the status it leaves alone until then.
      const news = JSON.stringify(facts);
      if (news !== state.reported) store.update("pods", { ...pod, status: statusOf(pod, facts, state.ip, timestamp(now)) });
      state.reported = news;
      if (facts.up || !isMeantToBeUp) return;
      state.upAt = Math.min(state.upAt, now + waitOf(pod, "ready-after-ms", READY_AFTER_MS));
      return state.upAt - now + REACTION_MS;
    },
  };
}

function annotation(pod: Pod, name: string): string | undefined {
  return pod.metadata.annotations?.[`sim/${name}`];
}

/** Milliseconds; what is no number is no time. */
function waitOf(pod: Pod, name: string, otherwise: number): number {
  return Number(annotation(pod, name) ?? otherwise) || 0;
}

/** Up are containers that run and pass their probes; `now` is RFC 3339. Times of conditions move only when the condition does. */
function statusOf({ spec, status }: Pod, facts: Record<"up" | "gatesOpen" | "crashing", boolean>, ip: string, now: string): Pod["status"] {
  const { up, gatesOpen, crashing } = facts;
  const { conditions = [], startTime = now } = status;
  const wanted = { PodScheduled: true, Initialized: true, ContainersReady: up, Ready: up && gatesOpen };
  const own = Object.entries(wanted).map(([type, holds]) => {
    const turned = { type, status: holds ? "True" : "False", lastTransitionTime: now };
    return conditions.find((earlier) => earlier.type === type && earlier.status === turned.status) ?? turned;
  });
  const containers = { ready: up, started: up, restartCount: crashing ? 3 : 0, imageID: "simulated", lastState: {} };
  const state = crashing ? CRASHING : { running: { startedAt: startTime } };
  return {
    ...status,
    phase: "Running",
    podIP: ip,
    podIPs: [{ ip }],
    hostIP: "127.0.0.1",
    startTime,
    conditions: [...own, ...conditions.filter(({ type }) => !(type in wanted))],
    containerStatuses: spec.containers.map(({ name, image = "" }) => ({ name, image, ...containers, state })),
  };
}
