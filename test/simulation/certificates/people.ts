/** What people do to the certificate and to the configurations that trust it. */
import { dig, type Draft, listOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import { type Action, insist, pause, type People, recreate } from "../person.ts";
import { CONFIGURATIONS, SECRET } from "./trust.ts";

const pathOf = (resource: string): string => `/apis/admissionregistration.k8s.io/v1/${resource.replace(/\..*/, "")}`;

function drawConfiguration({ world, draw }: People): readonly [path: string, KubeObject] {
  const all = CONFIGURATIONS.flatMap((kind) => world.store.list(kind).map((object) => [pathOf(kind), object] as const));
  return draw.of(all);
}

/** As a manifest has it. */
const manifestOf = (object: KubeObject, caBundle?: string): Draft => ({
  ...object,
  metadata: { name: object.metadata.name, ...(object.metadata.labels && { labels: object.metadata.labels }) },
  webhooks: listOf(object["webhooks"]).map((webhook) => ({
    ...(webhook as object),
    clientConfig: { ...(dig(webhook, "clientConfig") as object), caBundle },
  })),
});

const ACTIONS: Readonly<Record<string, Action>> = {
  deleteSecret: ({ world }) => world.ask("human", "DELETE", `/api/v1/namespaces/${NAMESPACE}/secrets/${SECRET}`),
  /** What is in it is no certificate: somebody deletes it after a while, as the job says. */
  spoilSecret: async (people) => {
    const { world, draw } = people;
    const path = `/api/v1/namespaces/${NAMESPACE}/secrets/${SECRET}`;
    const names = draw.of([
      ["tls.crt", "cert"],
      ["tls.key", "key"],
      ["ca.crt", "ca"],
    ]);
    const text = Buffer.from("no certificate").toString("base64");
    await insist(people, path, { data: Object.fromEntries(names.map((name) => [name, text])) });
    await pause(people, draw.between(1, draw.of([20_000, 200_000])));
    await world.ask("human", "DELETE", path);
  },
  /** GitOps writes a configuration as its manifest has it, without a bundle. */
  loseBundle: (people) => {
    const [path, object] = drawConfiguration(people);
    return people.world.ask("gitops", "PUT", `${path}/${object.metadata.name}`, manifestOf(object));
  },
  deleteConfiguration: async (people) => {
    const [path, object] = drawConfiguration(people);
    await people.world.ask("human", "DELETE", `${path}/${object.metadata.name}`);
    await pause(people, people.draw.between(1, 20_000));
    await recreate(people, path, manifestOf(object));
  },
};

export const certificateActions = ({ shape }: People): Readonly<Record<string, Action>> =>
  shape.certificate ? ACTIONS : {};
