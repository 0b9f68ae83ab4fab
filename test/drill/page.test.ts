/** docs/drill.md has the promises, the stages and the rights of the drill. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { parse } from "yaml";
import { shortDuration } from "../../infra/duration.ts";
import { PROMISES } from "./judge.ts";
import { PAUSE_IMAGE, RIGHTS, STAGES } from "./plan.ts";
import { describeRight } from "../../cli/decide/doctor/rights.ts";
import { readPage, rowsOf } from "../docs/pages.ts";

const page = readPage("docs/drill.md");
const rows = rowsOf(page);

it("the promises are those that are judged, in their words and in their order", () =>
  assert.deepEqual(
    rows.slice(0, PROMISES.length).map(([name, means]) => [name, means]),
    PROMISES.map(({ promise, means }) => [`\`${promise}\``, means]),
  ));

it("the stages are those that are played, with their bounds", () =>
  assert.deepEqual(
    rows.slice(PROMISES.length).map(([name, what = "", limit]) => [name, what.split(":")[0], limit]),
    Object.entries(STAGES).map(([name, { says, limitMs }]) => [`\`${name}\``, says, shortDuration(limitMs)]),
  ));

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
