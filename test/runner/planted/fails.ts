import assert from "node:assert/strict";
import { it } from "node:test";

it("fails", () => assert.fail("on purpose"));
