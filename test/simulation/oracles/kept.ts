/**
 * What a budget has reserved, wherever that is kept: where its definition has no field for it, on a Lease beside it. The
 * oracles are told of such a Lease as if the budget had the field.
 */
import { type Fields, put } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { BUDGETS, LEASES } from "../names.ts";
import { budgetOfLease, reservedOn } from "./stored.ts";

export function createKept(budgets: () => readonly KubeObject[]) {
  /** By UID of a budget. */
  const notes = new Map<string, Fields>();
  const withNote = (budget: KubeObject, note = notes.get(budget.metadata.uid)): KubeObject =>
    note ? put(budget, ["status", "disruptedPods"], note) : budget;

  return {
    /** The budgets with what is reserved. */
    list: (): readonly KubeObject[] => budgets().map((one) => withNote(one)),
    tell(event: StoreEvent): StoreEvent {
      const { type, resource, object, previous } = event;
      if (resource === BUDGETS)
        return { ...event, object: withNote(object), ...(previous && { previous: withNote(previous) }) };
      const uid = resource === LEASES ? budgetOfLease(object.metadata.name) : undefined;
      if (uid === undefined) return event;
      const before = notes.get(uid) ?? {};
      notes.set(uid, type === "DELETED" ? {} : reservedOn(object));
      const budget = budgets().find(({ metadata }) => metadata.uid === uid);
      if (!budget) return event;
      return { type: "MODIFIED", resource: BUDGETS, object: withNote(budget), previous: withNote(budget, before) };
    },
  };
}
