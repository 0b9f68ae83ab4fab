import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { Draft } from "../../emulator/objects.ts";
import { deploy, type Stage } from "../../reconciler/stage.ts";
import { setStatusStage } from "../../reconciler/group-status/act/status-stage.ts";
import { openTerminal } from "../stage.ts";

const PAUSED = "grafana.com/rollout-paused";

describe("zonewise pause, resume and restart", { timeout: 300_000 }, () => {
  let stage: Stage;
  before(async () => {
    stage = await setStatusStage();
    deploy(stage, "app:1");
    await stage.time.advance(2000);
    deploy(stage, "app:2");
    await stage.time.advance(2000);
  });
  after(() => stage.close());

  const setNamed = (zone: string): StatefulSet =>
    (stage.emulator.store.get("statefulsets.apps", "default", `ingester-zone-${zone}`) as StatefulSet | undefined) ??
    assert.fail();
  const pausedOf = (zone: string): string | undefined => setNamed(zone).metadata?.annotations?.[PAUSED];

  it("pause and resume all zones or one, once", async (t) => {
    const { run } = await openTerminal(t, stage);
    assert.equal((await run("pause ingester --zone ingester-zone-b")).out, "ingester-zone-b paused\n");
    assert.deepEqual([pausedOf("a"), pausedOf("b")], [undefined, "true"]);
    const { code, out } = await run("pause ingester");
    assert.equal(code, 0);
    assert.equal(out, "ingester-zone-a paused\ningester-zone-b was paused already\ningester-zone-c paused\n");
    assert.match((await run("resume ingester")).out, /^ingester-zone-a resumed$/m);
    assert.deepEqual([pausedOf("a"), pausedOf("b"), pausedOf("c")], [undefined, undefined, undefined]);
  });

  it("change nothing in a dry run", async (t) => {
    const { run } = await openTerminal(t, stage);
    assert.match((await run("pause ingester --dry-run")).out, /^ingester-zone-a paused \(dry run\)$/m);
    assert.equal(pausedOf("a"), undefined);
  });

  it("restart changes the template of every zone", async (t) => {
    const { run } = await openTerminal(t, stage);
    await run("restart ingester");
    for (const zone of ["a", "b", "c"])
      assert.match(
        setNamed(zone).spec?.template.metadata?.annotations?.["kubectl.kubernetes.io/restartedAt"] ?? "",
        /^\d{4}-/,
      );
    await run("pause ingester --zone ingester-zone-b");
    assert.equal(
      (await run("restart ingester")).out,
      "Restart of ingester-zone-a requested\n" +
        "Restart of ingester-zone-b requested; it is paused: its pods stay until zonewise -n default resume ingester\n" +
        "Restart of ingester-zone-c requested\n",
    );
    await run("resume ingester");
  });

  it("stop at a zone that somebody else has changed meanwhile, and say what was done", async (t) => {
    const { run } = await openTerminal(t, stage);
    const { store } = stage.emulator;
    const stop = store.subscribe(({ resource, object }) => {
      if (resource !== "statefulsets.apps" || object.metadata.name !== "ingester-zone-a") return;
      stop();
      const { metadata, ...other } = setNamed("b") as Draft;
      store.update("statefulsets.apps", { ...other, metadata: { ...metadata, annotations: { by: "another" } } });
    });
    const { code, err } = await run("pause ingester");
    assert.equal(code, 4);
    assert.match(
      err,
      /ingester-zone-b could not be changed: .*; before it: ingester-zone-a paused\n +someone else changed it/,
    );
  });

  it("do not say that nothing was changed where no answer came: the write may be stored", async (t) => {
    const { run } = await openTerminal(t, stage);
    await run("resume ingester");
    for (const { zone, text } of [
      {
        zone: "a",
        text: /ingester-zone-a may have been changed: .*; nothing else was changed\n +kubectl cluster-info/,
      },
      { zone: "b", text: /ingester-zone-b may have been changed: .*; before it: ingester-zone-a / },
    ]) {
      const name = `ingester-zone-${zone}`;
      const heal = stage.emulator.faults.inject({
        verb: "patch",
        resource: "statefulsets.apps",
        name,
        effect: { kind: "dropAfter" },
      });
      const { code, err } = await run("pause ingester");
      heal();
      assert.equal(code, 4);
      assert.match(err, text);
      assert.equal(pausedOf(zone), "true");
    }
  });

  it("take an empty namespace for none, as kubectl: the variable of a script was not set", async (t) => {
    const { run } = await openTerminal(t, stage);
    stage.emulator.store.create("namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "elsewhere" } });
    const { metadata, ...rest } = setNamed("a") as Draft;
    const { uid: _uid, resourceVersion: _version, ...own } = metadata;
    stage.emulator.store.create("statefulsets.apps", {
      ...rest,
      metadata: { ...own, name: "other-zone-a", namespace: "elsewhere", labels: { "rollout-group": "other" } },
    });
    assert.equal((await run("pause other --namespace=")).code, 4);
    assert.equal((await run("pause other -A --dry-run")).code, 0);
  });

  it("name the zones that there are", async (t) => {
    const { err } = await (await openTerminal(t, stage)).run("pause ingester --zone ingester-zone-d");
    assert.match(err, /no zone "ingester-zone-d" in the group\n +did you mean ingester-zone-a/);
  });
});
