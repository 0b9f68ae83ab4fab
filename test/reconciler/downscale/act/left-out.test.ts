/** Pending downscales of a group are not concluded while a step of the group is under way. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { leasesOf, nameLease } from "../../../../reconciler/downscale/act/downscale-lease.ts";
import { createZone } from "../../../functions/stage.ts";
import { FROM_5, LEASE, LIST, OLD, set } from "./concluding.ts";

it("the time of a downscale stays in its Lease while a step of the group is under way, and moves once none is", async (t) => {
  const on = await set(t);
  const zone = createZone(on, "web", { replicas: 3 });
  on.note({ web: { ...FROM_5, uid: zone.metadata?.uid ?? "" } });
  const isLeftOut = ({ name }: { readonly name: string }): boolean => name === LEASE;
  for (let i = 0; i < 2; i++) assert.deepEqual(await on.conclude(["default"], undefined, isLeftOut), [LIST]);
  assert.equal(on.written(), undefined);
  await on.conclude();
  assert.equal(on.written(), OLD);
});

describe("the Leases of groups", () => {
  const of = (...groups: string[]) => {
    const isOf = leasesOf(new Set(groups));
    return (namespace: string, name: string) => isOf({ namespace, name });
  };

  it("are those of their namespace and name", () => {
    const isOf = of("one/ingester");
    assert.deepEqual(
      [
        isOf("one", nameLease("ingester", "a")),
        isOf("two", nameLease("ingester", "a")),
        isOf("one", nameLease("store", "a")),
      ],
      [true, false, false],
    );
  });

  it("with an empty name are none: such a group is refused", () =>
    assert.equal(of("one/")("one", nameLease("", "zone-a")), false));

  it("are none for a step that is none of a group's", () => assert.equal(of("phased")("phased", "any"), false));
});
