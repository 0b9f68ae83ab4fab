/** The Kubernetes port of one process of a play: each call takes effect in one step, and may fail in every way. */
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { Store } from "../../emulator/store.ts";
import { portOf, type Carry, type Deed, type PortOptions } from "../store-port.ts";
import type { Stepper } from "./stepper.ts";

/** The outcome of a call. A late one takes effect after its caller has given up. */
export const FATES = ["lostBefore", "lostAfter", "late", "throttled", "killed"] as const;
export type Fate = "well" | (typeof FATES)[number];

interface Wires extends PortOptions {
  readonly stepper: Stepper;
  readonly store: Store;
  readonly fate: (actor: string) => Fate;
  /** Changes when more time passes than any call may last. */
  readonly epoch: () => number;
  /** StatefulSets do not change, so that the time of their reads makes no difference. */
  readonly unchanging: boolean;
  /** What the deed does, as it takes effect. */
  readonly judge: <T>(deed: Deed, effect: () => T) => T;
  readonly reach: (what: string) => void;
}

export function connectPort(actor: string, options: Wires): Cluster {
  const { stepper, store, epoch, judge, reach, unchanging } = options;

  const carry: Carry = async (deed, act) => {
    const { verb, plural, name } = deed;
    if (verb === "discover" || (unchanging && verb === "list" && plural === "statefulsets")) return act();
    const label = `${verb} ${plural} ${name}`;
    const effect = () => judge(deed, act);
    const begun = epoch();
    await stepper.step(label, actor);
    const fate = options.fate(actor);
    if (fate !== "well") reach(fate);
    // Its deadline passed before it reached the server.
    if (epoch() !== begun) throw new RolloutError("Timeout", label);
    if (fate === "throttled") throw new RolloutError("Throttled", label);
    if (fate === "lostBefore") throw new RolloutError("Timeout", label);
    if (fate === "late") {
      void stepper.step(`${label}, late`, "network").then(() => {
        try {
          if (epoch() === begun) effect();
        } catch {}
      });
      throw new RolloutError("Timeout", label);
    }
    const result = effect();
    if (fate === "lostAfter") throw new RolloutError("Timeout", label);
    if (fate !== "killed") return result;
    stepper.kill(actor);
    return await new Promise<never>(() => {});
  };

  return portOf(store, carry, options);
}
