import assert from "node:assert/strict";
import { it } from "node:test";
import { nameImages } from "../../../reconciler/model/zone.ts";
import { zone as zoneOf } from "../builders.ts";

it("names the images of each whole revision, but of no template that is not observed", () => {
  const zone = zoneOf();
  const named = (text: string, change: object = {}): string =>
    nameImages(text, [{ ...zone, images: ["app:2", "side:1"], ...change }]);
  const { updateRevision: name } = zone.status;
  assert.equal(named(`updating a-0 to ${name}, now`), `updating a-0 to app:2, side:1 (${name}), now`);
  assert.equal(named(`${name}-x`), `${name}-x`);
  assert.equal(named(`to ${name}`, { observed: false }), `to ${name}`);
  assert.equal(named(`It is ${name}.`), `It is app:2, side:1 (${name}).`);
  for (const odd of ["a(b", "(a+)+$", "$&"])
    assert.equal(named(`to ${odd}`, { status: { ...zone.status, updateRevision: odd } }), `to ${odd}`, "no name");
  assert.equal(named("to", { status: { ...zone.status, updateRevision: "" } }), "to");
});
