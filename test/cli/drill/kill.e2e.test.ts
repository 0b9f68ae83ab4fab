/** `zonewise drill --kill`: whose pods it kills, and that it kills no others. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Report } from "../../../cli/output/drill-table.ts";
import { buildPod, changeHook, EVICTION_HOOK, FUNCTIONS, NAMESPACE, openInstallation } from "./stage.ts";

const SHORT = { namespace: NAMESPACE, timeout: "20s", output: "json", kill: true };
/** The namespace of another installation. */
const OTHER = "other";

/** An installation with a pod, and another one with a pod, whose eviction webhook selects the namespaces that this says. */
async function openTwo(t: Parameters<typeof openInstallation>[0], namespaceSelector: object) {
  const stage = await openInstallation(t);
  const { store, run } = stage;
  store.create("namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: OTHER } });
  store.create("pods", buildPod("functions", FUNCTIONS, OTHER));
  const [resource, name] = EVICTION_HOOK;
  const found = store.get(resource, undefined, name) as unknown as { readonly webhooks: readonly object[] };
  store.create(resource, { ...found, metadata: { name: OTHER } } as never);
  changeHook(store, [resource, OTHER], (hook) => {
    const { clientConfig } = hook as { clientConfig: { service: object } };
    const service = { ...clientConfig.service, namespace: OTHER };
    // It is never called: it selects no eviction that is sent, or the drill does not begin.
    return { ...hook, clientConfig: { ...clientConfig, service }, namespaceSelector };
  });
  await run(1000);
  return stage;
}

describe("zonewise drill --kill", { timeout: 300_000 }, () => {
  it("it kills pods of the installation, and no others", async (t) => {
    const { store, play, run } = await openInstallation(t);
    store.create("pods", buildPod("functions", FUNCTIONS));
    store.create("pods", buildPod("bystander", { app: "other" }));
    await run(1000);
    const { out } = await play(SHORT);
    assert.equal((JSON.parse(out) as Report).killed, 1);
    assert.deepEqual(
      store.list("pods", NAMESPACE).map(({ metadata }) => metadata.name),
      ["bystander"],
    );
  });

  it("it kills none of another installation, whose webhook does not select the namespace by its labels", async (t) => {
    const { store, play, run } = await openTwo(t, { matchLabels: { team: "other" } });
    store.create("pods", buildPod("functions", FUNCTIONS));
    await run(1000);
    const { out } = await play(SHORT);
    assert.equal((JSON.parse(out) as Report).killed, 1);
    assert.equal(store.list("pods", OTHER).length, 1);
  });

  it("it does not begin where two installations select the namespace, and names both", async (t) => {
    const { store, play, run } = await openTwo(t, {});
    store.create("pods", buildPod("functions", FUNCTIONS));
    await run(1000);
    const { code, error } = await play(SHORT);
    assert.equal(code, 4);
    assert.match(error, /^eviction webhooks of several installations select zonewise: those of .*other/);
    assert.equal(store.list("statefulsets.apps").length, 0);
    assert.equal(store.list("pods").length, 2);
  });

  it("it does not begin where no webhook selects the namespace", async (t) => {
    const { store, play, run } = await openInstallation(t);
    store.create("pods", buildPod("functions", FUNCTIONS));
    changeHook(store, EVICTION_HOOK, (hook) => ({ ...hook, namespaceSelector: { matchLabels: { team: "other" } } }));
    await run(1000);
    const { code, error } = await play(SHORT);
    assert.equal(code, 4);
    assert.match(error, /^no eviction webhook was seen to select zonewise; whose pods/);
    assert.equal(store.list("pods").length, 1);
  });

  it("it does not begin where no pod of the installation runs, and takes none of another one instead", async (t) => {
    const { store, play } = await openTwo(t, { matchLabels: { team: "other" } });
    const { code, error } = await play(SHORT);
    assert.equal(code, 4);
    assert.match(error, /^no pod of the installation runs in zonewise: --kill would kill none, nothing was made/);
    assert.equal(store.list("statefulsets.apps").length, 0);
    assert.equal(store.list("pods", OTHER).length, 1);
  });

  it("if in the end nothing was killed it says so, and has not passed", async (t) => {
    const { store, start, run, until, untilEnded } = await openInstallation(t);
    store.create("pods", buildPod("functions", FUNCTIONS));
    await run(1000);
    const drill = start({ namespace: NAMESPACE, kill: true });
    await until(() => /refusals: /.test(drill.out()));
    store.remove("pods", NAMESPACE, "functions");
    const { code, out, err } = await untilEnded(drill);
    assert.match(out, /^8 of 8 promises held: /m, out + err);
    assert.match(err, /^note: no pod of the installation was killed: /m);
    assert.equal(code, 3);
  });
});
