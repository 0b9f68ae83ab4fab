/** The targets, by name: `functions-framework --target=reconcile`. */
export { reconcile, reconcileEvent } from "./reconcile.ts";
