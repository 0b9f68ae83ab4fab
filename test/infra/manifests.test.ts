/** The manifests: all parse, and everything that they name exists. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { VARIABLES } from "../../infra/config/variables.ts";
import { collect, type Manifest, read, ROOT } from "./manifests.ts";

interface Container {
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string }[];
  readonly securityContext?: object;
}

const files = globSync("{infra/manifests,knative,examples}/**/*.yaml", { cwd: ROOT }).toSorted();

const containersOf = (manifest: Manifest): Container[] =>
  collect(manifest, (object) => object["containers"] as Container[] | undefined).flat();

/** What the image holds: the entries that are built. */
const build = readFileSync(join(ROOT, "infra/build.ts"), "utf8");
/** Of functions-framework, not ours. */
const FRAMEWORK = new Set(["FUNCTION_TARGET", "FUNCTION_SOURCE", "FUNCTION_SIGNATURE_TYPE"]);

describe("every manifest", () => {
  for (const file of files) {
    it(`${file} parses, and names only what exists`, () => {
      for (const manifest of read(file)) {
        const { resources = [], components = [] } = manifest as unknown as {
          resources?: unknown;
          components?: unknown;
        };
        if (file.endsWith("kustomization.yaml")) {
          const manifests = globSync("*.yaml", { cwd: join(ROOT, dirname(file)) }).filter(
            (name) => name !== "kustomization.yaml",
          );
          assert.deepEqual(
            manifests.filter((name) => ![resources].flat().includes(name)),
            [],
            "files that nobody applies",
          );
          for (const named of [resources, components].flat() as string[])
            assert.ok(existsSync(join(ROOT, dirname(file), named)), `${file}: ${named}`);
        }
        if (file.startsWith("examples/")) continue;
        for (const pod of collect(manifest, (object) => ("containers" in object ? object : undefined)))
          assert.equal(pod["enableServiceLinks"], false, "a Service's address would pass for one of our variables");
        for (const field of collect(manifest, (object) => object["fieldRef"] as { apiVersion?: string } | undefined))
          assert.equal(
            field.apiVersion,
            "v1",
            "without the default, Helm 4 and Flux could not take over what kubectl applied",
          );
        for (const { args = [], env = [], securityContext } of containersOf(manifest)) {
          const unknown = env.map(({ name }) => name).filter((name) => !(name in VARIABLES) && !FRAMEWORK.has(name));
          assert.deepEqual(unknown, [], "variables that nobody reads");
          const entry = args.find((arg) => !arg.startsWith("--")) ?? "";
          const [, built] = /^dist\/(.*)\.js$/.exec(entry) ?? [];
          assert.ok(built === undefined ? existsSync(join(ROOT, entry)) : build.includes(`"${built}": "`), entry);
          assert.partialDeepStrictEqual(securityContext, {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          });
        }
      }
    });
  }
});

describe("every CronJob", () => {
  const jobs = files.flatMap((file) => read(file)).filter(({ kind }) => kind === "CronJob");
  it("is one of three", () => assert.equal(jobs.length, 3));
  for (const { metadata, spec } of jobs)
    it(`${metadata?.name} leaves at most four finished Jobs in lists, for an hour`, () =>
      assert.partialDeepStrictEqual(spec, {
        successfulJobsHistoryLimit: 1,
        failedJobsHistoryLimit: 3,
        jobTemplate: { spec: { ttlSecondsAfterFinished: 3600 } },
      }));
});

it("replacements name kinds in full: kubectl takes patterns there from 1.36 on alone, and otherwise replaces nothing", () => {
  const selects = files
    .filter((file) => file.endsWith("kustomization.yaml"))
    .flatMap((file) => read(file).flatMap(({ replacements }) => collect(replacements, ({ select }) => select)));
  assert.ok(selects.length > 10);
  for (const { kind = "", name = "" } of selects as { kind?: string; name?: string }[])
    assert.match(kind + name, /^[\w.-]*$/);
});
