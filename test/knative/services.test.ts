import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { collect, HOOKS, read, ROOT } from "../infra/manifests.ts";

describe("on Knative", () => {
  const knative = ["knative/services.yaml", "knative/events/services.yaml"].flatMap(read);

  it("every function is exported by its target's name", async () => {
    const targets = knative.flatMap((one) =>
      collect(one, (object) => (object["name"] === "FUNCTION_TARGET" ? String(object["value"]) : undefined)),
    );
    const exported = Object.keys(await import("../../functions/index.ts"));
    assert.deepEqual(
      targets.filter((target) => !exported.includes(target)),
      [],
    );
    assert.equal(targets.length, 8);
  });

  it("every webhook has a Service of its own that never scales to zero, and a host in the certificate", () => {
    const [names] = [knative.map(({ metadata }) => metadata?.name)];
    const text = readFileSync(join(ROOT, "knative/kustomization.yaml"), "utf8");
    const mapped = read("knative/domain-mappings.yaml").map(({ metadata }) => metadata?.name);
    for (const { name, path } of HOOKS) {
      assert.ok(names.includes(name) && mapped.includes(`${name}.zonewise.example.com`));
      assert.ok(text.includes(`https://${name}.zonewise.example.com${path}`));
    }
    const certified = text + readFileSync(join(ROOT, "knative/events/services.yaml"), "utf8");
    const hosts = [...certified.matchAll(/value: (.*zonewise\.example\.com)$/gm)].map(([, hosts]) => hosts?.split(","));
    assert.deepEqual(hosts, [mapped, mapped]);
    const scales = collect(
      read("knative/services.yaml"),
      (object) => object["autoscaling.knative.dev/min-scale"] as string | undefined,
    );
    assert.deepEqual(
      scales,
      Array.from(HOOKS, () => "2"),
    );
  });
});
