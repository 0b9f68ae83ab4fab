/** The targets, by name: `functions-framework --target=noDownscale`. */
import { asTarget } from "./http/framework.ts";

export { reconcile, reconcileEvent } from "./reconcile.ts";
export const noDownscale = asTarget("noDownscale");
export const podEviction = asTarget("podEviction");
export const prepareDownscale = asTarget("prepareDownscale");
export const zpdbValidation = asTarget("zpdbValidation");
