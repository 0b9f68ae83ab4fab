/** What zones mirror is read a few at a time, each once, and what cannot be read hides nothing else. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { examineReferences } from "../../../cli/gather/examine-references.ts";
import type { Session } from "../../../cli/session.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { Ref } from "../../../infra/kubernetes/cluster.ts";
import type { Resource } from "../../../infra/kubernetes/resources.ts";
import { statefulSetObject } from "../../reconciler/builders.ts";
import { MIRROR } from "../../reconciler/scaling/mirror-stage.ts";

const NAME = "grafana.com/rollout-mirror-replicas-from-resource-name";
const KIND: Resource = { group: "rollout-operator.grafana.com", version: "v1", plural: "replicatemplates" };

/** A zone for each name that is mirrored; reads fail as `failures` has them. */
function sessionOf(names: readonly string[], failures: Readonly<Record<string, RolloutError>> = {}) {
  const seen = { reads: [] as string[], lists: 0, now: 0, most: 0 };
  const zones = names.map((mirrored, i) =>
    statefulSetObject({ name: `zone-${i}`, annotations: { ...MIRROR, [NAME]: mirrored } }),
  );
  const cluster = {
    discover: async () => [KIND],
    get: async (_resource: Resource, { name }: Ref) => {
      seen.reads.push(name);
      seen.most = Math.max(seen.most, ++seen.now);
      await setImmediate();
      seen.now--;
      if (failures[name]) throw failures[name];
      return { spec: { replicas: 3 } };
    },
    list: async function* ({ plural }: Resource) {
      if (plural === KIND.plural) seen.lists++;
      yield { items: plural === "statefulsets" ? zones : [], resourceVersion: "1" };
    },
  };
  const session = { namespace: "", cluster } as unknown as Session;
  return { seen, session };
}

it("reads each resource once, at most 8 at a time", async () => {
  const names = Array.from({ length: 40 }, (_, i) => `template-${i % 20}`);
  const { seen, session } = sessionOf(names);
  assert.deepEqual(await examineReferences(session), []);
  assert.deepEqual([seen.reads.length, seen.most], [20, 8]);
});

it("says what cannot be read, and keeps the findings of all others", async () => {
  const gone = new RolloutError("NotFound", "not found");
  const failures = {
    slow: new RolloutError("Timeout", "no answer"),
    secret: new RolloutError("Forbidden", "not allowed"),
    gone,
    lost: gone,
  };
  const { seen, session } = sessionOf(["fine", ...Object.keys(failures)], failures);
  const found = await examineReferences(session);
  assert.deepEqual(found.map(({ check, object }) => `${check} ${object}`).toSorted(), [
    "mirror-missing statefulset/zone-3",
    "mirror-missing statefulset/zone-4",
    "not-checked apiserver",
    "not-checked you",
  ]);
  assert.equal(seen.lists, 1);
});
