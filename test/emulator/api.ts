/** What the handlers of requests work with. */
import type { createAdmission } from "./admission/admission.ts";
import type { Clock } from "./clock.ts";
import type { Faults } from "./faults.ts";
import type { Registry } from "./registry.ts";
import type { Store } from "./store.ts";
import type { Tokens } from "./tokens.ts";

export interface Api {
  readonly store: Store;
  readonly clock: Clock;
  readonly registry: Registry;
  readonly faults: Faults;
  readonly tokens: Tokens;
  readonly admission: ReturnType<typeof createAdmission>;
}
