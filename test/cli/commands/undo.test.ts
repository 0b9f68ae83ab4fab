/** `zonewise undo` on a group of which one zone is finished, one is under way, and one has not begun. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { REVISIONS } from "../../emulator/controllers/statefulset/revisions.ts";
import type { Stage } from "../../reconciler/stage.ts";
import { openTerminal } from "../stage.ts";
import { imagesOf, podsOf, setImage, setOf, setRollout, SETS } from "./half-rolled.ts";

it("undo takes back the zones under way alone: no pod of another zone is touched", async (t) => {
  const stage = await setRollout(t);
  const { run, json } = await openTerminal(t, stage);
  const before = podsOf(stage);
  const { code, out } = await run("undo ingester --yes");
  assert.equal(code, 0, out);
  assert.match(out, /^ingester-zone-a +finished +app:2 \(ingester-zone-a-\S+\) +- +no pods replaced$/m);
  assert.match(out, /^ingester-zone-b +under way +app:2 \(ingester-zone-b-\S+\) +app:1 \(\S+\) +1 of 3 go back$/m);
  assert.match(
    out,
    /^ingester-zone-c +not started +app:2 .* app:1 .* no pods replaced; the rollout had not started here$/m,
  );
  assert.match(out, /zonewise -n default undo ingester --zone ingester-zone-a --to-revision 1$/m);
  assert.match(out, /^ingester-zone-b goes back to app:1 \(ingester-zone-b-/m);
  assert.deepEqual(imagesOf(stage), ["app:2", "app:1", "app:1"]);
  await stage.time.advance(5000);
  assert.deepEqual(podsOf(stage), before);

  const versions = (): unknown[] => ["a", "b", "c"].map((zone) => setOf(stage, zone).metadata?.resourceVersion);
  const written = versions();
  const again = await run("undo ingester --yes");
  assert.deepEqual([again.code, versions(), imagesOf(stage)], [0, written, ["app:2", "app:1", "app:1"]]);
  const { zones } = await json<{ zones: { becomes?: object; was: { images: string[] } }[] }>("undo ingester");
  assert.deepEqual(
    zones.map(({ becomes, was }) => [becomes, was.images[0]]),
    [
      [undefined, "app:2"],
      [undefined, "app:1"],
      [undefined, "app:1"],
    ],
  );
});

it("undo leaves a group that is finished alone, also where a pod is broken, and takes it back to a revision", async (t) => {
  const stage = await setRollout(t);
  const { run } = await openTerminal(t, stage);
  const done = await run("undo ingester --zone ingester-zone-a");
  assert.deepEqual([done.code, imagesOf(stage)], [0, ["app:2", "app:2", "app:2"]], done.out);
  const missing = await run("undo ingester --zone ingester-zone-a --to-revision 7 --yes");
  assert.equal(missing.code, 4);
  assert.match(
    missing.err,
    /ingester-zone-a has no revision 7 \(it has 2: app:2 \(.*\); 1: app:1 \(.*\)\); nothing was/,
  );
  const chosen = await run("undo ingester --zone ingester-zone-a --to-revision 1 --yes");
  assert.match(chosen.out, /finished +app:2 \(\S+\) +app:1 \(\S+\) +all are replaced, in turn$/m);
  assert.deepEqual([chosen.code, imagesOf(stage)], [0, ["app:1", "app:2", "app:2"]]);

  await stage.time.advance(2000);
  const { metadata, status } = setOf(stage, "a");
  // The template that has come back has a new number, and its old name.
  for (const [again, expected] of [
    ["1", 4],
    [status?.updateRevision, 0],
  ] as const) {
    const { code, out, err } = await run(`undo ingester --zone ingester-zone-a --to-revision ${again} --yes`);
    assert.equal(code, expected, out + err);
    assert.equal(setOf(stage, "a").metadata?.resourceVersion, metadata?.resourceVersion);
  }
});

for (const columns of [60, 80])
  it(`undo shows what was and what becomes of each zone on a terminal of ${columns} columns, too`, async (t) => {
    const stage = await setRollout(t);
    const { run } = await openTerminal(t, stage, { isTty: true, size: { columns, rows: 60 } });
    const out = stripVTControlCharacters((await run("undo ingester --dry-run")).out);
    assert.match(
      out,
      /^ingester-zone-b\n {2}state +under way\n {2}was +app:2 \(ingester-zone-b-\S+\)\n {2}becomes +app:1 \(\S+\)$/m,
    );
    assert.match(out, /^ {2}pods +1 of 3 go back$/m);
    const long = out.split("\n").filter((line) => line.length > columns && !line.startsWith("  zonewise "));
    assert.deepEqual(long, []);
  });

it("undo counts the pods of a template that was overtaken half-way: they are replaced, too", async (t) => {
  const stage = await setRollout(t);
  await setImage(stage, "app:3");
  await stage.time.advance(2000);
  const { run } = await openTerminal(t, stage);
  const { out } = await run("undo ingester --dry-run");
  assert.match(out, /^ingester-zone-b +under way +app:3 .* app:1 \(\S+\) +1 of 3 go back$/m);
  assert.match(
    out,
    /^ingester-zone-c +not started +app:3 .* app:1 .* no pods replaced; the rollout had not started here$/m,
  );
  const between = await run("undo ingester --zone ingester-zone-b --to-revision 2 --dry-run");
  assert.match(between.out, /under way +app:3 .* app:2 \(\S+\) +pods of other revisions are replaced, in turn$/m);
});

it("undo to a revision refuses to take several zones by one number, which is another template in each", async (t) => {
  const stage = await setRollout(t);
  const { run } = await openTerminal(t, stage);
  assert.equal((await run("undo ingester --zone ingester-zone-b --yes")).code, 0);
  const written = ["a", "b", "c"].map((zone) => setOf(stage, zone).metadata?.resourceVersion);
  const { code, err } = await run("undo ingester --to-revision 2 --yes");
  assert.equal(code, 2);
  assert.match(err, /--to-revision needs --zone, .*; nothing was changed\n.*zonewise history ingester /);
  assert.deepEqual(
    ["a", "b", "c"].map((zone) => setOf(stage, zone).metadata?.resourceVersion),
    written,
  );
});

it("undo leaves a zone alone whose pods are all updated and ready, though nothing has recorded it yet", async (t) => {
  const stage = await setRollout(t, { recorded: false });
  const { code, out } = await (await openTerminal(t, stage)).run("undo ingester --yes");
  assert.deepEqual([code, imagesOf(stage)], [0, ["app:2", "app:1", "app:1"]], out);
});

/** Deletes a zone without its pods, and creates it again with this image. */
async function createAgain(stage: Stage, zone: string, image: string): Promise<void> {
  const { store } = stage.emulator;
  const { metadata: { name, namespace, labels } = {}, spec } = structuredClone(setOf(stage, zone));
  const [container = assert.fail()] = spec?.template.spec?.containers ?? [];
  container.image = image;
  store.remove(SETS, "default", `ingester-zone-${zone}`, { propagationPolicy: "Orphan" });
  await stage.time.advance(2000);
  const made = { apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name, namespace, labels }, spec };
  const { uid } = store.create(SETS, made as never).metadata;
  await stage.time.advance(5000);
  // As its controller adopts them.
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name: name ?? "", uid: uid ?? "", controller: true };
  for (const one of store.list(REVISIONS))
    if (!one.metadata.ownerReferences)
      store.update(REVISIONS, { ...one, metadata: { ...one.metadata, ownerReferences: [owner] } });
}

const UNCLEAR =
  /ingester-zone-c was created again, .*--to-revision \(it has .*app:1 \((\S+)\).*\); nothing was changed/;

it("undo takes a zone that was created again to no template but the one that is named", async (t) => {
  const stage = await setRollout(t);
  await createAgain(stage, "c", "app:3");
  const { run } = await openTerminal(t, stage);
  const { code, err } = await run("undo ingester --yes");
  const [, name = assert.fail(err)] = UNCLEAR.exec(err) ?? [];
  assert.deepEqual([code, imagesOf(stage)], [4, ["app:2", "app:2", "app:3"]]);
  assert.equal((await run("undo ingester --zone ingester-zone-b --yes")).code, 0);
  assert.equal((await run(`undo ingester --zone ingester-zone-c --to-revision ${name} --yes`)).code, 0);
  assert.deepEqual(imagesOf(stage), ["app:2", "app:1", "app:1"]);
  await stage.time.advance(2000);
  const again = await run("undo ingester --yes");
  assert.match(again.err, UNCLEAR, "its first template is no earlier one");
  assert.deepEqual(imagesOf(stage), ["app:2", "app:1", "app:1"]);
});

it("undo changes nothing by a status that has not seen the latest spec", async (t) => {
  const stage = await setRollout(t);
  const { store } = stage.emulator;
  const set = setOf(stage, "c");
  store.update(SETS, { ...set, spec: { ...set.spec, minReadySeconds: 1 } } as never);
  const { code, err } = await (await openTerminal(t, stage)).run("undo ingester --yes");
  assert.equal(code, 4);
  assert.match(err, /has not seen the latest spec of ingester-zone-c yet; nothing was changed/);
  assert.deepEqual(imagesOf(stage), ["app:2", "app:2", "app:2"]);
});

describe("undo asks", () => {
  const ANSWERS = [
    { what: "a no", yes: false, code: 1, images: ["app:2", "app:2", "app:2"] },
    { what: "a yes", yes: true, code: 0, images: ["app:2", "app:1", "app:1"] },
  ] as const;
  for (const { what, yes, code, images } of ANSWERS)
    it(`and obeys ${what}`, async (t) => {
      const stage = await setRollout(t);
      const asked: string[] = [];
      const confirm = async (question: string): Promise<boolean> => (asked.push(question), yes);
      const ended = await (await openTerminal(t, stage, { confirm })).run("undo ingester");
      assert.deepEqual([ended.code, imagesOf(stage), asked], [code, images, ["Change these templates?"]]);
    });

  it("and without a terminal refuses unless it has --yes; a dry run asks nobody and stores nothing", async (t) => {
    const stage = await setRollout(t);
    const { run } = await openTerminal(t, stage);
    const { code, err } = await run("undo ingester");
    assert.deepEqual([code, imagesOf(stage)], [2, ["app:2", "app:2", "app:2"]]);
    assert.match(err, /there is no terminal; nothing was changed\n +add --yes/);
    assert.match(
      (await run("undo ingester --dry-run")).out,
      /^ingester-zone-b goes back to app:1 \(.*\) \(dry run\)$/m,
    );
    assert.deepEqual(imagesOf(stage), ["app:2", "app:2", "app:2"]);
  });

  it("in a document of its own on standard output, and asks beside it", async (t) => {
    const stage = await setRollout(t);
    const asked: string[] = [];
    const confirm = async (question: string): Promise<boolean> => (asked.push(question), true);
    const { zones } = await (
      await openTerminal(t, stage, { confirm })
    ).json<{ zones: { stage: string }[] }>("undo ingester");
    assert.deepEqual(
      zones.map(({ stage: one }) => one),
      ["finished", "under way", "not started"],
    );
    assert.match(asked[0] ?? "", /^ZONE .*\n(?:.*\n)+Change these templates\?$/);
  });
});
