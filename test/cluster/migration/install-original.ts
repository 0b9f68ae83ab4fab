/** Installs the original as its users do, and keeps its manifests as docs/migrate/rollout-operator.md says. */
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { certify } from "../../certify.ts";
import { HELM } from "../install/helm.ts";
import type { Stage } from "../stage/stage.ts";
import { buildObjects, buildOriginal, printManifests, type Shape } from "./original.ts";
import { readCommands } from "./steps.ts";

type Place = Pick<Stage, "call" | "namespace" | "folder">;

interface Means {
  readonly port: number;
  /** Runs commands of the page. */
  readonly run: (commands: readonly string[]) => Promise<string>;
}

/** Resolves when its webhooks judge, with `original.yaml` in the folder, and the certificate where Zonewise looks. */
export async function installOriginal(place: Place, shape: Shape, { port, run }: Means): Promise<void> {
  const { namespace, folder } = place;
  await putCertificate(place, shape);
  const manifests = buildOriginal(shape, { namespace, port });
  if (shape.release === undefined) {
    await writeFile(join(folder, "source.yaml"), printManifests([...manifests, ...buildObjects(namespace)]));
    await run(await readCommands("Before you begin", "create"));
    await run(["kubectl -n NAMESPACE apply -f original.yaml"]);
  } else {
    const chart = join(folder, "chart");
    await mkdir(join(chart, "templates"), { recursive: true });
    await writeFile(join(chart, "Chart.yaml"), "apiVersion: v2\nname: rollout-operator\nversion: 0.53.0\n");
    await writeFile(join(chart, "templates/all.yaml"), printManifests(manifests));
    const { code, text } = await HELM.run(["install", shape.release, chart, "-n", namespace]);
    assert.equal(code, 0, text);
    const commands = await readCommands("Helm");
    assert.equal(commands.length, 2);
    await run(commands.map((command) => command.replace(/^helm /, `${HELM.path} `)));
  }
  assert.doesNotMatch(await readFile(join(folder, "original.yaml"), "utf8"), /ZoneAwarePod|ReplicaTemplate/);
  await run([
    "kubectl -n NAMESPACE rollout status deployment/OPERATOR --timeout=300s",
    ...["mutatingwebhookconfiguration/prepare-downscale", "validatingwebhookconfiguration/no-downscale"].map(inject),
    ...["validatingwebhookconfiguration/pod-eviction", "validatingwebhookconfiguration/zpdb-validation"].map(inject),
  ]);
}

/** As the original does for configurations with its label. */
const inject = (name: string): string =>
  `kubectl patch ${name}-NAMESPACE --type=json -p='[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"'$(kubectl -n NAMESPACE get secret SECRET -o jsonpath='{.data.ca}')'"}]'`;

/** The Secret as the original makes it: three keys, for the name of its Service. */
async function putCertificate({ call, namespace }: Place, { operator, secret }: Shape): Promise<void> {
  const { caPem, certPem, keyPem } = await certify(`${operator}.${namespace}.svc`);
  const data = Object.entries({ ca: caPem, cert: certPem, key: keyPem });
  const encoded = Object.fromEntries(data.map(([key, text]) => [key, Buffer.from(text).toString("base64")]));
  await call("POST", `/api/v1/namespaces/${namespace}/secrets`, { metadata: { name: secret }, data: encoded });
}
