/** The rules in our definitions, as a real API server knows them; test/infra/definitions.test.ts plays them on the embedded cluster. */
import { randomBytes } from "node:crypto";
import { after, before } from "node:test";
import { DEFINITION_RULES, describeRules } from "../../infra/definitions.ts";
import { connect } from "../conformance/client.ts";
import { readKubeconfig } from "../conformance/recording.ts";
import { connectAdmin, remove } from "../stage/client.ts";
import { type Definition, putDefinition, readDefinition } from "../stage/definitions.ts";

const client = connect(readKubeconfig(process.env["KUBECONFIG"] ?? ""));
const admin = await connectAdmin(process.env["KUBECONFIG"]);

for (const rules of DEFINITION_RULES) {
  const { plural, version, isClusterWide } = rules;
  // An API group of its own: the definition of the cluster is others', too.
  const group = `zw-${randomBytes(3).toString("hex")}.example.com`;
  const path = `/apis/${group}/${version}/${isClusterWide ? "" : "namespaces/default/"}${plural}`;
  before(async () => {
    const text = JSON.stringify(await readDefinition(plural)).replaceAll(rules.group, group);
    await putDefinition(admin, JSON.parse(text) as Definition);
  });
  after(() => remove(admin, `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.${group}`));
  describeRules(rules, () => ({ client, group, path }));
}
after(() => (client.close(), admin.close()));
