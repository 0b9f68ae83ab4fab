/** docs/operate/drill.md has the image and the rights of the drill. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { parse } from "yaml";
import { PAUSE_IMAGE, RIGHTS } from "./plan.ts";
import { describeRight } from "../../cli/decide/doctor/rights.ts";
import { readPage } from "../docs/pages.ts";

const page = readPage("docs/operate/drill.md");

it("the image is the one that is taken", () => assert.ok(page.includes(PAUSE_IMAGE)));

interface Role {
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

it("the role allows what a drill asks for, and nothing else", () => {
  const [, text = ""] = /^```yaml\n([^]*?)^```$/m.exec(page) ?? [];
  const { rules } = parse(text) as Role;
  const allowed = rules.flatMap(({ apiGroups: [group = ""], resources: [path = ""], verbs }) => {
    const [resource = "", subresource] = path.split("/");
    return verbs.map((verb) => describeRight({ verb, group, resource, ...(subresource && { subresource }) }));
  });
  assert.deepEqual(allowed.toSorted(), RIGHTS.map(describeRight).toSorted());
});
