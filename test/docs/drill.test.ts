/** docs/drill.md has the promises, the stages and the rights of the drill. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { parseAllDocuments } from "yaml";
import { shortDuration } from "../../infra/duration.ts";
import { PROMISES } from "../../cli/drill/judge.ts";
import { CLUSTER_RIGHTS, KILL_RIGHTS, NAMESPACED_RIGHTS, PAUSE_IMAGE, STAGES } from "../../cli/drill/plan.ts";
import { describeRight, type Right } from "../../cli/decide/doctor/rights.ts";
import { readPage, rowsOf } from "./pages.ts";

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

it("the roles allow what a drill asks for, and nothing else", () => {
  const [, text = ""] = /^```yaml\n([^]*?)^```$/m.exec(page) ?? [];
  const [drill, kill] = parseAllDocuments(text).map((document) => document.toJS() as Role);
  const allowedBy = ({ rules }: Role = { rules: [] }): string[] =>
    rules.flatMap(({ apiGroups: [group = ""], resources: [path = ""], verbs }) => {
      const [resource = "", subresource] = path.split("/");
      return verbs.map((verb) => describeRight({ verb, group, resource, ...(subresource && { subresource }) }));
    });
  const asked = (rights: readonly Right[]): string[] => rights.map(describeRight).toSorted();
  assert.deepEqual(allowedBy(drill).toSorted(), asked([...CLUSTER_RIGHTS, ...NAMESPACED_RIGHTS]));
  assert.deepEqual(allowedBy(kill).toSorted(), asked(KILL_RIGHTS));
});
