/** What keeps partitions of the StatefulSets of PhasedRollouts. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { createRaisePartition } from "../../../functions/phased/raise-partition.ts";
import { certify } from "../../certify.ts";
import { assertOutcome, PARTITION_CASES, write } from "../../functions/phased/partition-cases.ts";
import { serve } from "../../functions/serve-one.ts";
import { connect } from "../conformance/client.ts";
import { readKubeconfig } from "../conformance/recording.ts";
import {
  createManifest,
  deleteManifest,
  type Manifest,
  renderConfigurations,
  renderManifests,
  SERVICE,
} from "../stage/manifests.ts";
import { openPlaceFor, type Place } from "../stage/place.ts";
import { until } from "../stage/until.ts";

/** What guards partitions: the policy, or the webhook of the manifests with our function behind it. */
const GUARDS: Readonly<Record<string, (place: Place) => Promise<readonly Manifest[]>>> = {
  policy: ({ namespace }) => renderManifests(namespace, { folder: "infra/manifests/phased-policy" }),
  async webhook({ admin, namespace, defer }) {
    const { caPem, certPem, keyPem } = await certify(`${SERVICE}.${namespace}.svc`);
    const { server, port } = await serve(createRaisePartition(), { cert: certPem, key: keyPem });
    defer(() => (server.closeAllConnections(), void server.close()));
    const service = { metadata: { name: SERVICE }, spec: { type: "ExternalName", externalName: "localhost" } };
    await admin.call("POST", `/api/v1/namespaces/${namespace}/services`, service);
    return await renderConfigurations(namespace, ["raise-partition"], { caPem, port });
  },
};

for (const [guard, render] of Object.entries(GUARDS))
  it(`by the ${guard}: of the StatefulSet of a PhasedRollout, only the reconciler lowers the partition`, async (t) => {
    const place = await openPlaceFor(t);
    const { admin, namespace } = place;
    const client = connect(readKubeconfig(process.env["KUBECONFIG"] ?? ""));
    place.defer(client.close);
    const manifests = await render(place);
    for (const manifest of manifests) place.defer(() => deleteManifest(admin, manifest));
    for (const manifest of manifests) await createManifest(admin, manifest);
    const [first] = PARTITION_CASES;
    assert.ok(first);
    // The API server takes both into account a moment after it has stored them.
    await until(`the ${guard} guards`, async () => {
      const { stored } = await write(first, client, namespace);
      return stored.spec.updateStrategy.rollingUpdate?.partition === first.partition;
    });
    for (const one of PARTITION_CASES) assertOutcome(one, await write(one, client, namespace), guard === "webhook");
  });
