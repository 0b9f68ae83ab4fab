/**
 * A host with its kubelet: what the Node says of it while it runs, reboots, is lost, and comes back.
 *
 *   up --reboot--> down --NOT_READY_MS--> the Node is not Ready, nor are its pods
 *                    \--rebootMs--> up: the kubelet registers with the new boot --> Ready
 */
import { reportNode } from "../../emulator/controllers/report-node.ts";
import { dig, isTrue, put, timestamp } from "../../emulator/objects.ts";
import type { KubeObject, Store } from "../../emulator/store.ts";
import { createHost, type Host } from "../../host/host.ts";
import type { Draw } from "../draw.ts";
import type { Schedule } from "../schedule.ts";
import { type FleetNode, FROM, nodeObject, TO } from "./shape.ts";

export interface NodeHost extends FleetNode {
  readonly model: Host;
  readonly isUp: () => boolean;
  /** Goes down, and comes back after so many milliseconds, or as the options say. */
  readonly reboot: (downMs?: number) => void;
  /** Somebody turns it on again. */
  readonly repair: () => void;
  /** The kubelet registers its node again. */
  readonly register: () => void;
}

interface NodeHostOptions {
  readonly store: Store;
  readonly schedule: Schedule;
  readonly draw: Draw;
  readonly node: FleetNode;
  readonly actionMs: Parameters<typeof createHost>[0]["actionMs"];
  /** Milliseconds of the next reboot; undefined if the host does not come back by itself. */
  readonly rebootMs: () => number | undefined;
  /** By how many milliseconds its clock is ahead. */
  readonly skewMs: number;
  readonly onDown: () => void;
  readonly onUp: () => void;
}

/** Without a sign of life a node counts as lost. */
const NOT_READY_MS = 40_000;
/** Between the boot and the first report of the kubelet that it is Ready. */
const KUBELET_MS = 8000;

export function createNodeHost({ store, schedule, draw, node, actionMs, rebootMs, skewMs, ...on }: NodeHostOptions) {
  const model = createHost({ version: FROM, offers: TO, actionMs: actionMs ?? {} }, schedule);
  let isUp = true;
  let downs = 0;
  const stored = (): KubeObject | undefined => store.get("nodes", undefined, node.name);

  /** As the kubelet writes the status. */
  function report(ready: "True" | "False" | "Unknown", isDown: boolean): void {
    const object = stored();
    if (!object) return;
    const { "sim/down": _, ...annotations } = object.metadata.annotations ?? {};
    const isHeard = ready !== "Unknown";
    store.update("nodes", {
      ...object,
      metadata: { ...object.metadata, annotations: { ...annotations, ...(isDown && { "sim/down": "true" }) } },
      status: reportNode(object, {
        ready,
        ...(isHeard && { bootId: model.facts().bootId }),
        now: schedule.now() + (isHeard ? skewMs : 0),
      }),
    });
  }

  /** The API server keeps what is there of the Node, and says that its kubelet is silent. */
  function goDown(): void {
    const object = stored();
    if (object) store.update("nodes", put(object, ["metadata", "annotations", "sim/down"], "true"));
  }

  /** What the node controller does about a silent kubelet. */
  function markLost(down: number): void {
    if (isUp || down !== downs) return;
    report("Unknown", true);
    for (const pod of store.list("pods"))
      if (dig(pod, "spec", "nodeName") === node.name && isTrue(pod, "Ready"))
        store.update("pods", { ...pod, status: notReady(pod, timestamp(schedule.now())) });
  }

  function comeUp(): void {
    isUp = true;
    if (draw.chance(0.5)) report("False", true);
    const down = downs;
    schedule.after(draw.between(200, KUBELET_MS), () => {
      if (isUp && down === downs) report("True", false);
    });
    on.onUp();
  }

  const host: NodeHost = {
    ...node,
    model,
    isUp: () => isUp,
    reboot(downMs) {
      if (!isUp) return;
      isUp = false;
      const down = ++downs;
      on.onDown();
      goDown();
      schedule.after(NOT_READY_MS, () => markLost(down));
      const ms = downMs ?? rebootMs();
      if (ms !== undefined)
        schedule.after(ms, () => {
          if (isUp || down !== downs) return;
          model.boot();
          comeUp();
        });
    },
    repair() {
      if (isUp) return;
      downs++;
      model.boot();
      comeUp();
    },
    register() {
      if (stored()) return;
      store.create("nodes", nodeObject(node));
      report(isUp ? "True" : "Unknown", !isUp);
    },
  };
  host.register();
  return host;
}

function notReady(pod: KubeObject, time: string): object {
  const conditions = (dig(pod, "status", "conditions") ?? []) as readonly { readonly type: string }[];
  return {
    ...(pod["status"] as object),
    conditions: conditions.map((one) =>
      ["Ready", "ContainersReady"].includes(one.type) ? { ...one, status: "False", lastTransitionTime: time } : one,
    ),
  };
}
