/** Draws programs: the same seed gives the same one. */
import type { Fields } from "../../../emulator/objects.ts";
import { type Draw, drawFrom } from "../../../simulation/draw.ts";
import { JSON_PATCH, MERGE, STRATEGIC } from "../requests.ts";
import { METADATA_CHANGES, metadataFor, ownerReference, type Subject, THEMES } from "./bodies.ts";
import { type Call, NO_UID, type Program } from "./program.ts";

export interface Drawn {
  readonly theme: string;
  /** Plurals of the kinds that the program writes. */
  readonly plurals: readonly string[];
  readonly program: Program;
}

/** What one step is drawn with. */
interface Scene {
  readonly draw: Draw;
  readonly subjects: readonly Subject[];
  readonly subject: Subject;
  /** Of an object that may be there. */
  readonly name: string;
  readonly path: string;
}

type Maker = (scene: Scene) => readonly Call[];

/** Kinds of steps, and how often each comes among the others. */
const MAKERS: readonly (readonly [weight: number, make: Maker])[] = [
  [20, create],
  [8, ({ path }) => [{ method: "GET", path }]],
  [8, list],
  [14, replace],
  [22, change],
  [12, remove],
  [2, removeAll],
  [8, writeStatus],
  [6, scale],
  [8, evict],
  [6, atOnce],
];

export function drawProgram(seed: number, steps: number): Drawn {
  const draw = drawFrom(seed);
  const themes = Object.keys(THEMES);
  // Seeds in a row have all themes.
  const theme = themes[seed % themes.length] ?? "";
  const subjects = THEMES[theme] ?? [];
  const lottery = MAKERS.flatMap(([weight, make]) => Array.from({ length: weight }, () => make));
  const program: (readonly Call[])[] = [];
  /** Objects that may be there, as far as is known without playing. */
  const likely = new Set<string>();
  while (program.length < steps) {
    // The first steps create: without objects there is little to do.
    const make = program.length < 3 ? create : draw.of(lottery);
    const isKnown = make !== create && likely.size > 0 && draw.chance(0.9);
    const path = isKnown ? draw.of([...likely]) : anyPath(draw, subjects, make === create ? program.length : undefined);
    const [plural = "", name = ""] = pathOfPod(draw, path, subjects).split("/");
    const subject = subjects.find((one) => one.plural === plural);
    if (!subject) throw new Error(`the theme ${theme} has no ${plural}`);
    const calls = make({ draw, subjects, subject, name, path: `${plural}/${name}` });
    if (calls.length > 0) program.push(calls);
    if (make === create && calls.every(({ query }) => !query)) likely.add(`${plural}/${name}`);
    if (make === remove && draw.chance(0.5)) likely.delete(`${plural}/${name}`);
  }
  return { theme, plurals: [...new Set(subjects.map(({ plural }) => plural))], program };
}

/**
 * Few names, so that calls meet, and one budget: of several that select a pod, controllers take any. With `at`, at times
 * one to be generated: it comes last in lists, in order of the steps.
 */
function anyPath(draw: Draw, subjects: readonly Subject[], at: number | undefined): string {
  const { plural } = draw.of(subjects);
  if (plural === "poddisruptionbudgets") return `${plural}/a`;
  return `${plural}/${at !== undefined && draw.chance(0.08) ? `z-${at + 10}-*` : draw.of(["a", "a", "b"])}`;
}

/** Beside StatefulSets, what is done to a pod is mostly done to one of theirs. */
function pathOfPod(draw: Draw, path: string, subjects: readonly Subject[]): string {
  const [plural = "", name = ""] = path.split("/");
  if (!subjects.some((subject) => subject.plural === "statefulsets") || /[-*\d]$/.test(name)) return path;
  const becomesPod = plural === "pods" || (plural === "statefulsets" && draw.chance(0.4));
  return becomesPod && draw.chance(0.9) ? `pods/${name}-${draw.below(4)}` : path;
}

const dryRun = (draw: Draw): { query?: string } => (draw.chance(0.06) ? { query: "dryRun=All" } : {});

function create({ draw, subjects, subject, name }: Scene): Call[] {
  const { apiVersion, kind, plural, fields } = subject;
  const fresh = name.replace("*", "");
  const metadata = metadataFor(draw, fresh, draw.of(subjects));
  return [
    {
      method: "POST",
      path: plural,
      ...dryRun(draw),
      body: { apiVersion, kind, metadata, ...fields(draw, fresh.replace(/-$/, "")) },
    },
  ];
}

function list({ draw, subject: { plural } }: Scene): Call[] {
  const query = draw.of([
    "",
    "limit=1",
    "limit=2",
    `limit=1&continue=@continue ${plural}`,
    `limit=1&continue=@continue ${plural}`,
    "labelSelector=app%3Dz",
    "labelSelector=app!%3Dz&limit=1",
    "labelSelector=app+in+(z,other),!l",
    "labelSelector=a~b",
    "fieldSelector=metadata.name%3Da",
    "fieldSelector=spec.none%3Da",
    ...(plural === "pods" ? ["fieldSelector=status.phase%3DRunning", "fieldSelector=spec.nodeName!%3D"] : []),
  ]);
  return [{ method: "GET", path: plural, ...(query && { query }) }];
}

/** What a write of the whole object or a patch says of UID and version. */
function preconditions(draw: Draw, path: string): Fields {
  return draw.of<Fields>([
    {},
    {},
    {},
    { resourceVersion: `@version ${path}` },
    { resourceVersion: `@older ${path}` },
    { uid: `@uid ${path}` },
    { uid: `@former ${path}` },
  ]);
}

/** A merge patch of the object: of its fields, or of its metadata. */
function mergeOf({ draw, subject, subjects }: Pick<Scene, "draw" | "subject" | "subjects">): Fields {
  if (draw.chance(0.05)) return { metadata: { ownerReferences: [ownerReference(draw, draw.of(subjects))] } };
  return draw.chance(0.35) ? { metadata: draw.of(METADATA_CHANGES)(draw) } : draw.of(subject.changes)(draw);
}

const withMetadata = (body: Fields, metadata: Fields): Fields => ({
  ...body,
  ...((Object.keys(metadata).length > 0 || body["metadata"] !== undefined) && {
    metadata: { ...(body["metadata"] as Fields | undefined), ...metadata },
  }),
});

/** Without a version the write is unconditional, with an old one it conflicts. */
const replacing = (draw: Draw, path: string): Fields =>
  draw.of<Fields>([
    {},
    {},
    { resourceVersion: null },
    { resourceVersion: `@older ${path}` },
    { uid: NO_UID },
    { uid: null },
  ]);

const editOf = ({ subject, path, name }: Pick<Scene, "subject" | "path" | "name">, change: Fields): Fields => ({
  "@edit": path,
  with: change,
  else: { apiVersion: subject.apiVersion, kind: subject.kind, metadata: { name } },
});

function replace(scene: Scene): Call[] {
  const { draw, path } = scene;
  const edit = withMetadata(draw.chance(0.1) ? {} : mergeOf(scene), replacing(draw, path));
  return [{ method: "PUT", path, ...dryRun(draw), body: editOf(scene, edit) }];
}

function change(scene: Scene): Call[] {
  const { draw, path, subject } = scene;
  const body = withMetadata(mergeOf(scene), preconditions(draw, path));
  const type = draw.of([MERGE, MERGE, subject.custom ? MERGE : STRATEGIC, JSON_PATCH]);
  if (type !== JSON_PATCH) return [{ method: "PATCH", path, ...dryRun(draw), type, body }];
  return [{ method: "PATCH", path, ...dryRun(draw), type, body: operations(draw, path) }];
}

function operations(draw: Draw, path: string): readonly Fields[] {
  return draw.of<readonly Fields[]>([
    [{ op: "add", path: "/metadata/labels/j", value: draw.of(["1", "2"]) }],
    [{ op: "remove", path: "/metadata/labels/j" }],
    [{ op: "replace", path: "/metadata/labels", value: { app: "z" } }],
    [
      { op: "test", path: "/metadata/resourceVersion", value: `@${draw.of(["version", "older"])} ${path}` },
      { op: "add", path: "/metadata/annotations/j", value: "1" },
    ],
    [{ op: "test", path: "/metadata/uid", value: `@${draw.of(["uid", "former"])} ${path}` }],
    [{ op: "add", path: "/metadata/finalizers", value: ["example.com/hold"] }],
    [{ op: "remove", path: "/metadata/finalizers" }],
    [{ op: "add", path: "/metadata/finalizers/-", value: "example.com/more" }],
    [{ op: "move", from: "/metadata/annotations/sim~1ready-after-ms", path: "/metadata/labels/moved" }],
    [{ op: "copy", from: "/metadata/name", path: "/metadata/labels/copied" }],
    [{ op: "nonsense", path: "/metadata/labels/j" }],
    [{ op: "remove", path: "/none/at/all" }],
  ]);
}

function deleteOptions(draw: Draw, path: string): Fields {
  return {
    ...(draw.chance(0.35) && {
      preconditions: draw.of<Fields>([
        { uid: `@uid ${path}` },
        { uid: `@former ${path}` },
        { resourceVersion: `@version ${path}` },
        { resourceVersion: `@older ${path}` },
        { uid: `@uid ${path}`, resourceVersion: `@version ${path}` },
      ]),
    }),
    ...(draw.chance(0.3) && {
      propagationPolicy: draw.of(["Background", "Foreground", "Orphan", "Orphan", "Sideways"]),
    }),
    ...(draw.chance(0.3) && { gracePeriodSeconds: draw.of([0, 0, 5, 60, -1]) }),
    ...(draw.chance(0.06) && { dryRun: ["All"] }),
  };
}

function remove({ draw, path }: Scene): Call[] {
  const options = deleteOptions(draw, path);
  return [{ method: "DELETE", path, ...(Object.keys(options).length > 0 && { body: options }) }];
}

/** By labels: a cluster keeps objects of its own in each namespace. */
function removeAll({ draw, subject: { plural } }: Scene): Call[] {
  const body = draw.chance(0.4) ? { propagationPolicy: draw.of(["Background", "Orphan"]) } : undefined;
  return [
    { method: "DELETE", path: plural, query: `labelSelector=app%3D${draw.of(["z", "other"])}`, ...(body && { body }) },
  ];
}

function writeStatus({ draw, subject, path, name }: Scene): Call[] {
  if (!subject.statuses) return [];
  const status = draw.of(subject.statuses)(draw);
  const spec = draw.chance(0.3) ? draw.of(subject.changes)(draw) : {};
  const at = `${path}/status`;
  if (draw.chance(0.1)) return [{ method: "GET", path: at }];
  if (draw.chance(0.3))
    return [
      {
        method: "PUT",
        path: at,
        ...dryRun(draw),
        body: editOf({ subject, path, name }, withMetadata({ ...spec, status }, replacing(draw, path))),
      },
    ];
  const body = withMetadata({ ...spec, status }, preconditions(draw, path));
  return [
    { method: "PATCH", path: at, ...dryRun(draw), type: draw.of([MERGE, subject.custom ? MERGE : STRATEGIC]), body },
  ];
}

function scale({ draw, subject, path, name }: Scene): Call[] {
  if (!subject.hasScale) return [];
  const at = `${path}/scale`;
  const spec = { replicas: draw.of([0, 1, 2, 3, 4, -1]) };
  if (draw.chance(0.2)) return [{ method: "GET", path: at }];
  if (draw.chance(0.5))
    return [
      {
        method: "PATCH",
        path: at,
        ...dryRun(draw),
        type: MERGE,
        body: withMetadata({ spec }, preconditions(draw, path)),
      },
    ];
  const metadata = { name: draw.chance(0.05) ? "other" : name, namespace: "@namespace", ...preconditions(draw, path) };
  return [
    { method: "PUT", path: at, ...dryRun(draw), body: { apiVersion: "autoscaling/v1", kind: "Scale", metadata, spec } },
  ];
}

function evictionOf(draw: Draw, path: string): Call {
  const name = path.split("/").at(-1);
  const options = deleteOptions(draw, path);
  const body = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name, namespace: "@namespace" },
    ...(Object.keys(options).length > 0 && { deleteOptions: options }),
  };
  return { method: "POST", path: `${path}/eviction`, ...dryRun(draw), body };
}

function evict({ draw, subject: { plural }, path, name }: Scene): Call[] {
  return plural === "pods" && !name.endsWith("*") ? [evictionOf(draw, path)] : [];
}

/** Two to four writes of one object that meet: patches, of which each takes effect, or replacements, of which one does. */
function atOnce(scene: Scene): Call[] {
  const { draw, path } = scene;
  const places = Array.from({ length: draw.between(2, 4) }, (_, index) => index);
  const annotate = (key: string): Fields => ({ metadata: { annotations: { [key]: "1" } } });
  if (draw.chance(0.5))
    return places.map((index) => ({ method: "PATCH", path, type: MERGE, body: annotate(`at-${index}`) }));
  // Which one wins is chance: they say the same.
  const call = { method: "PUT", path, body: editOf(scene, annotate(`once-${draw.below(3)}`)) };
  return places.map(() => call);
}
