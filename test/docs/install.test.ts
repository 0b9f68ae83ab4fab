/** docs/start/upgrade.md removes all that can be applied beside an installation. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { describe, it } from "node:test";
import { readPage } from "./pages.ts";
import { ROOT } from "../infra/manifests.ts";

const [, removal = ""] = readPage("docs/start/upgrade.md").split("\n## Remove\n");
/** Kustomizations that users apply by themselves; components are part of another one. */
const optional = globSync("infra/manifests/*/kustomization.yaml", { cwd: ROOT }).filter((file) =>
  /^# Optional[^]*^kind: Kustomization$/m.test(readPage(file)),
);

describe("the removal in docs/start/upgrade.md", () => {
  it("has optional kustomizations to name", () => assert.ok(optional.length >= 4));
  for (const file of optional) {
    const folder = file.replace("/kustomization.yaml", "");
    it(`names ${folder}`, () => assert.ok(removal.includes(`\`${folder}\``)));
  }
});
