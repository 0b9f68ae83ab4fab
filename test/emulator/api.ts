/** What the handlers of requests work with. */
import type { Clock } from "./clock.ts";
import type { Faults } from "./faults.ts";
import type { Draft } from "./objects.ts";
import type { Registry } from "./registry.ts";
import type { Ask } from "./request.ts";
import type { Store } from "./store.ts";
import type { Tokens } from "./tokens.ts";

/** One admission: what is about to happen to which object. */
export interface Review {
  readonly operation: "CREATE" | "UPDATE" | "DELETE";
  /** The object as the request would leave it; none on delete. */
  readonly object?: Draft;
  readonly oldObject?: Draft;
  /** CreateOptions, UpdateOptions, PatchOptions or DeleteOptions as sent. */
  readonly options: Readonly<Record<string, unknown>>;
}

export interface Admission {
  /** The object as the mutating webhooks leave it. Throws their refusal. */
  mutate(ask: Ask, review: Review): Promise<Draft | undefined>;
  /** Throws the refusal of a validating webhook. */
  check(ask: Ask, review: Review): Promise<void>;
}

export interface Api {
  readonly store: Store;
  readonly clock: Clock;
  readonly registry: Registry;
  readonly faults: Faults;
  readonly tokens: Tokens;
  readonly admission: Admission;
}
