/** The policy that keeps partitions of the StatefulSets of PhasedRollouts; test/functions has the webhook. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { assertOutcome, PARTITION_CASES, write } from "../../functions/phased/partition-cases.ts";
import { connect } from "../conformance/client.ts";
import { readKubeconfig } from "../conformance/recording.ts";
import { enforcePolicies } from "../stage/manifests.ts";
import { openPlaceFor } from "../stage/place.ts";
import { until } from "../stage/until.ts";

it("of the StatefulSet of a PhasedRollout, only the reconciler lowers the partition", async (t) => {
  const place = await openPlaceFor(t);
  const { namespace } = place;
  const client = connect(readKubeconfig(process.env["KUBECONFIG"] ?? ""));
  place.defer(client.close);
  await enforcePolicies(place, { folder: "infra/manifests/phased-policy" });
  const [first] = PARTITION_CASES;
  assert.ok(first);
  // The API server takes the policy into account a moment after it has stored it.
  await until("the policy guards", async () => {
    const { stored } = await write(first, client, namespace);
    return stored.spec.updateStrategy.rollingUpdate?.partition === first.partition;
  });
  for (const one of PARTITION_CASES) assertOutcome(one, await write(one, client, namespace), false);
});
