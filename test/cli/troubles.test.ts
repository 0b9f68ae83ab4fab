/**
 * What goes wrong, what Zonewise says of it, and the cure that it proposes: executed as it stands there, on the embedded
 * cluster. A cure ends what was said, and touches no healthy pod and no other zone.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { some } from "../runs.ts";
import { BUDGET_TROUBLES } from "./troubles/budgets.ts";
import { CHECK_TROUBLES } from "./troubles/checks.ts";
import { NODE_TROUBLES } from "./troubles/nodes.ts";
import { PAUSE_TROUBLES } from "./troubles/pauses.ts";
import { POD_TROUBLES } from "./troubles/pods.ts";
import { SCALING_TROUBLES } from "./troubles/scaling.ts";
import { isByCommand, play, type Trouble } from "./troubles/trouble.ts";

const TROUBLES: readonly Trouble[] = [
  ...POD_TROUBLES,
  ...PAUSE_TROUBLES,
  ...BUDGET_TROUBLES,
  ...SCALING_TROUBLES,
  ...CHECK_TROUBLES,
  ...NODE_TROUBLES,
];

describe("the cure that is proposed for", { timeout: 900_000 }, () => {
  for (const row of some(TROUBLES)) it(row.trouble, async (t) => await play(t, row));
});

it("most cures are commands, and some of them open an editor", () => {
  const commands = TROUBLES.filter(isByCommand);
  assert.ok(TROUBLES.length >= 30 && commands.filter(({ cure }) => !cure.edit).length >= 24);
});
