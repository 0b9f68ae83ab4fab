/** Watches, and the representations of objects. */
import { dig, listOf } from "../../../emulator/objects.ts";
import type { WatchEvent } from "../client.ts";
import { at, configMap, del, get, patch, post, statefulSet } from "../requests.ts";
import type { Scenario, Stage } from "../stage.ts";

const METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

export const lists: readonly Scenario[] = [
  {
    name: "watches send every change since a version, in order",
    run: async (stage) => {
      const all = at(stage.namespace, "configmaps");
      const { body } = await stage.send(get(all));
      const version = String(dig(body, "metadata", "resourceVersion"));
      await fill(stage, all);
      await stage.send(patch(`${all}/b`, { data: { k: "2" } }));
      await stage.send(patch(`${all}/b`, { data: { k: "2" } }));
      await stage.send(patch(`${all}/b`, { metadata: { labels: { app: "z" } } }));
      await stage.send(del(`${all}/c`));
      await seen(stage, "all since", `${all}?watch=1&resourceVersion=${version}`, "DELETED");
      await seen(
        stage,
        "of one label since",
        `${all}?watch=1&resourceVersion=${version}&labelSelector=app%3Dx`,
        "DELETED",
      );
      await seen(
        stage,
        "one name since",
        `${all}?watch=1&resourceVersion=${version}&fieldSelector=metadata.name%3Dc`,
        "DELETED",
      );
      const initial = await stage.watch(`${all}?watch=1&resourceVersion=0&labelSelector=app`);
      const events = await initial.until((all) => all.length >= 2);
      stage.record("existing objects come first", events.map(brief).toSorted());
      const streamed = await stage.watch(
        `${all}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=app`,
      );
      const marked = await streamed.until((all) => all.some(({ type }) => type === "BOOKMARK"));
      stage.record("a bookmark ends the initial events of a streamed list", marked.map(brief).toSorted());
      stage.record("and carries the annotation", dig(marked.at(-1), "object", "metadata", "annotations"));
    },
  },
  {
    name: "objects are returned as metadata or as tables",
    run: async (stage) => {
      const all = at(stage.namespace, "configmaps");
      await stage.send(post(all, configMap("a", { k: "1" }, { labels: { app: "x" } })));
      await stage.call("metadata", get(`${all}/a`, METADATA), ".");
      await stage.call("metadata list", get(`${all}?labelSelector=app`, METADATA_LIST), "kind", "apiVersion", "items");
      await stage.call(
        "metadata list by fall-back",
        get(`${all}?labelSelector=app`, `${METADATA_LIST},application/json`),
        "kind",
        "apiVersion",
      );
      const watching = await stage.watch(`${all}?watch=1&resourceVersion=0&labelSelector=app`, METADATA);
      const [event] = await watching.until((events) => events.length > 0);
      stage.record("metadata watched", event);
      const sets = at(stage.namespace, "statefulsets");
      await stage.send(post(sets, statefulSet("z", { replicas: 0 })));
      await settled(stage, `${sets}/z`);
      const table = await stage.call(
        "a table of StatefulSets",
        get(sets, `${TABLE},application/json`),
        "kind",
        "apiVersion",
      );
      stage.record("its columns", columns(table.body));
      stage.record(
        "its row",
        listOf(dig(table.body, "rows"))
          .map((row) => [dig(row, "cells"), dig(row, "object", "kind")])
          .map(withoutAge),
      );
      const pods = await stage.call("a table of pods, empty", get(at(stage.namespace, "pods"), TABLE), "kind", "rows");
      stage.record("columns of pods", columns(pods.body));
    },
  },
];

async function fill(stage: Stage, all: string): Promise<void> {
  for (const [name, app] of [
    ["a", "x"],
    ["b", "x"],
    ["c", "y"],
  ] as const)
    await stage.send(post(all, configMap(name, { k: "1" }, { labels: { app } })));
}

async function seen(stage: Stage, step: string, path: string, last: string): Promise<void> {
  const watching = await stage.watch(path);
  const events = await watching.until((all) => all.some(({ type }) => type === last));
  stage.record(step, events.filter(({ object }) => dig(object, "metadata", "name") !== "kube-root-ca.crt").map(brief));
}

function brief({ type, object }: WatchEvent): string {
  return `${type} ${String(dig(object, "metadata", "name"))} ${JSON.stringify(dig(object, "data"))} ${JSON.stringify(dig(object, "metadata", "labels"))}`;
}

async function settled(stage: Stage, path: string): Promise<void> {
  const [all = "", name = ""] = path.split(/\/(?=[^/]*$)/);
  const watching = await stage.watch(`${all}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3D${name}`);
  await watching.until((events) => dig(events.at(-1)?.object, "status", "observedGeneration") === 1);
}

/** Columns without their descriptions. */
function columns(body: unknown): unknown[] {
  return listOf(dig(body, "columnDefinitions")).map((column) =>
    ["name", "type", "format", "priority"].map((field) => dig(column, field)),
  );
}

/** The age is the one cell that depends on the time. */
function withoutAge([cells, kind]: unknown[]): unknown[] {
  return [listOf(cells).map((cell) => (/^\d+m?s$/.test(String(cell)) ? "<age>" : cell)), kind];
}
