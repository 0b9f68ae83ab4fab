/** The plugin as it is built: what it registers, and what it brings. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { runInNewContext } from "node:vm";
import { bundlePlugin } from "../../headlamp/build.ts";
import { nameOfGroup } from "../../reconciler/group-status/name.ts";

const text = await bundlePlugin();

interface Route {
  readonly path: string;
  readonly name: string;
  readonly sidebar: string;
}
interface Entry {
  readonly name: string;
  readonly url: string;
  readonly parent: null;
}
type Section = (props: { readonly resource: unknown }) => { readonly props: object } | null;

/** Runs it as Headlamp does: its text, beside `window.pluginLib`. */
function load() {
  const routes: Route[] = [];
  const entries: Entry[] = [];
  const sections: Section[] = [];
  const createElement = (type: unknown, props: object) => ({ type, props });
  const window = {
    pluginLib: {
      React: { createElement },
      registerRoute: (route: Route) => routes.push(route),
      registerSidebarEntry: (entry: Entry) => entries.push(entry),
      registerDetailsViewSection: (section: Section) => sections.push(section),
    },
  };
  // A context of its own has nothing that Node.js alone has.
  runInNewContext(text, { window });
  return { routes, entries, sections };
}

describe("the Headlamp plugin", () => {
  it("registers an entry of the sidebar, and the pages of a cluster and of a group", () => {
    const { routes, entries } = load();
    assert.deepEqual(
      entries.map(({ name, url, parent }) => ({ name, url, parent })),
      [{ name: "zonewise", url: "/zonewise", parent: null }],
    );
    assert.deepEqual(
      routes.map(({ path, name, sidebar }) => [path, name, sidebar]),
      [
        ["/zonewise", "Zonewise", "zonewise"],
        ["/zonewise/:namespace/:name", "Zonewise group", "zonewise"],
      ],
    );
  });
  it("adds to the details of a group's StatefulSet, and of nothing else", () => {
    const [section = assert.fail()] = load().sections;
    const metadata = { name: "a", namespace: "z", labels: { "rollout-group": "Ingester" } };
    const shown = section({ resource: { kind: "StatefulSet", cluster: "one", metadata } });
    assert.deepEqual(
      { ...shown?.props },
      {
        cluster: "one",
        namespace: "z",
        group: "Ingester",
        name: nameOfGroup("Ingester"),
      },
    );
    for (const resource of [
      undefined,
      null,
      { kind: "StatefulSet", cluster: "one", metadata: { name: "b", namespace: "z" } },
      { kind: "Pod", cluster: "one", metadata },
      { kind: "StatefulSet", metadata },
    ])
      assert.equal(section({ resource }), null);
  });
  it("takes React from Headlamp, and is small: 400 kB at most", () => {
    assert.doesNotMatch(text, /react\.development|react\.production|__SECRET_INTERNALS/);
    assert.ok(text.length < 400_000, `${text.length} bytes`);
  });
});
