/** The targets, by name: `functions-framework --target=noDownscale`. */
import { systemClock } from "../infra/clock.ts";
import { asTarget } from "./http/framework-target.ts";
import { createReconcileTargets } from "./reconcile.ts";
import { createStatusTarget } from "./status/compose.ts";

export const { reconcile, reconcileEvent } = createReconcileTargets(process.env, systemClock);
export const noDownscale = asTarget("noDownscale");
export const phasedDefaults = asTarget("phasedDefaults");
export const phasedValidation = asTarget("phasedValidation");
export const podDeletion = asTarget("podDeletion");
export const podEviction = asTarget("podEviction");
export const prepareDownscale = asTarget("prepareDownscale");
export const raisePartition = asTarget("raisePartition");
export const status = createStatusTarget(process.env, systemClock);
export const zpdbValidation = asTarget("zpdbValidation");
