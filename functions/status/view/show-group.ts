/**
 * A rollout group on the status page: what holds it, its zones and pods, and its plan, as its RolloutGroup and its
 * pods record them. Pure.
 */
import { h, type ComponentChild } from "preact";
import { parseTimestamp } from "../../../infra/timestamp.ts";
import type { GroupProgress, StoredHold, ZoneRow } from "../../../reconciler/group-status/status.ts";
import { describeStep } from "../../../reconciler/group-status/progress.ts";
import { notesOf } from "../../../reconciler/group-status/view.ts";
import type { Pod } from "../../../reconciler/model/pod.ts";
import { nameImages } from "../../../reconciler/model/zone.ts";
import { remedyFor } from "../../../reconciler/remedies/rules.ts";
import { type PageGroup, keyOf, type LiveZone, viewPageGroup } from "./records.ts";
import { showRemedy } from "./remedy.ts";
import { showTime } from "./time.ts";

interface GroupSection {
  readonly group: PageGroup;
  /** Its zones and their pods; undefined if they were not read. */
  readonly live: readonly LiveZone[] | undefined;
  readonly now: number;
  /** The reconciler does not tick, or nobody knows: its estimates would look current. */
  readonly isOld: boolean;
}

export const addressOf = ({ namespace, name }: PageGroup): string =>
  `?namespace=${encodeURIComponent(namespace)}&group=${encodeURIComponent(name)}`;

export function showGroup({ group, live, now, isOld }: GroupSection): ComponentChild {
  const { besideHolds: sentence, holds, zones, plan } = viewPageGroup(group);
  const { progress } = group.status;
  const id = `group ${keyOf(group)}`.replaceAll(" ", "-");
  return h(
    "section",
    { id, class: "group", "aria-labelledby": `${id}-name` },
    showTitle(group, `${id}-name`),
    showDone(group, { now, isOld }),
    sentence !== "" && h("p", {}, nameImages(sentence, live ?? [])),
    holds.length > 0 && h("ul", { class: "holds" }, ...holds.map((hold) => showHold(hold, { group, live, now }))),
    showZones(group, { zones, live, now }),
    progress && h("p", { class: "faint" }, ...showProgress(progress, now)),
    plan.length > 0 && [
      h("h4", {}, "Plan"),
      h("ol", { class: "plan" }, ...plan.map((step) => h("li", {}, describeStep(step)))),
    ],
  );
}

function showDone(group: PageGroup, { now, isOld }: Pick<GroupSection, "now" | "isOld">): ComponentChild {
  const {
    pods: { all, updated: done },
    endsAt: end,
  } = viewPageGroup(group, isOld);
  if (all === 0 || done >= all) return undefined;
  return h(
    "p",
    { class: "done" },
    h("progress", { max: all, value: done, "aria-label": `Updated pods of ${keyOf(group)}` }),
    h("span", {}, `${done} of ${all} pods updated`),
    isInFuture(end, now) && h("span", {}, "done about ", showTime(end, now)),
  );
}

function showTitle(group: PageGroup, id: string): ComponentChild {
  return h("h3", { id }, h("a", { href: addressOf(group), id: `${id}-link` }, keyOf(group)), " ", showPhase(group));
}

/** A ready group may still wait to be scaled: it then has the colour of waiting groups. */
export function showPhase(group: PageGroup): ComponentChild {
  const { phase, standing } = viewPageGroup(group);
  return showWord(phase, phase === "Ready" && standing === "waiting" ? "waiting" : undefined);
}

const showWord = (phase: string, colour = phase.toLowerCase()): ComponentChild =>
  h("span", { class: `phase ${colour}` }, phase);

function showHold(
  hold: Partial<StoredHold>,
  { group, live = [], now }: Pick<GroupSection, "group" | "live" | "now">,
): ComponentChild {
  const { reason = "", phase, message = "", objects = [], since, nextCheck } = hold;
  const { namespace, name, status } = group;
  const remedy = remedyFor(reason, { namespace, group: status.group ?? name, zones: live, message, objects });
  const names = objects.map(({ kind, name }, i) => [
    i > 0 && " ",
    h("span", { class: "name" }, `${kind} ${name}${i + 1 < objects.length ? "," : ""}`),
  ]);
  return h(
    "li",
    {},
    phase !== undefined && phase !== status.phase && [showWord(phase), " "],
    h("strong", {}, reason),
    " since ",
    showTime(since, now),
    isInFuture(nextCheck, now) && [", until ", showTime(nextCheck, now)],
    h("p", {}, nameImages(message, live)),
    names.length > 0 && h("p", { class: "faint" }, names),
    showRemedy(remedy),
  );
}

/** True for a time in the future. An end in the past is not shown: the state may still last for any time. */
const isInFuture = (time: string | undefined, now: number): boolean => (parseTimestamp(time ?? "") ?? 0) > now;

const ZONE_COLUMNS = ["Zone", "Revision", "Updated", "Ready", "Pods"] as const;

interface ShownZones {
  readonly zones: readonly ZoneRow[];
  readonly live: readonly LiveZone[] | undefined;
  readonly now: number;
}

function showZones(group: PageGroup, { zones, live, now }: ShownZones): ComponentChild | undefined {
  if (zones.length === 0) return undefined;
  const head = ZONE_COLUMNS.map((name) => h("th", { scope: "col" }, name));
  return h(
    "div",
    { class: "scroll", tabIndex: 0, role: "region", "aria-label": `Zones of ${keyOf(group)}` },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...head)),
      h(
        "tbody",
        {},
        ...zones.map((zone) =>
          showZone(
            zone,
            live?.find(({ name }) => name === zone.name),
            now,
          ),
        ),
      ),
    ),
  );
}

function showZone(zone: Partial<ZoneRow>, live: LiveZone | undefined, now: number): ComponentChild {
  const { name = "", replicas, updated, ready } = zone;
  const notes = notesOf(zone, now).join(", ");
  const cells = [
    [
      h("span", { class: "mono" }, describeRevisions(zone)),
      live && isOf(live, zone) && ` ${describeImages(live, zone)}`,
    ],
    `${updated}/${replicas}`,
    `${ready}/${replicas}`,
    live ? h("ul", { class: "pods" }, ...live.pods.map((pod) => showPod(pod, zone))) : `${zone.pods} pods`,
  ];
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name, notes !== "" && h("span", { class: "faint" }, ` ${notes}`)),
    ...cells.map((cell, i) => h("td", { "data-label": ZONE_COLUMNS[i + 1] }, cell)),
  );
}

/** True if the template that was read belongs to the recorded revision. */
const isOf = ({ observed, status }: LiveZone, { updateRevision }: Partial<ZoneRow>): boolean =>
  observed && status.updateRevision === updateRevision;

function describeRevisions({ name = "", currentRevision = "", updateRevision = "" }: Partial<ZoneRow>): string {
  const [current, next] = [shorten(name, currentRevision), shorten(name, updateRevision)];
  return current === next ? next : `${current} → ${next}`;
}

/** `nginx:1.28 → nginx:1.29`: the images that outdated pods run and the template has not, and its own that they lack. */
function describeImages({ images, pods }: LiveZone, { updateRevision }: Partial<ZoneRow>): string {
  const running = new Set(pods.filter(({ revision }) => revision !== updateRevision).flatMap((pod) => pod.images));
  const old = [...running].filter((image) => !images.includes(image));
  if (old.length === 0) return images.join(", ");
  const added = images.filter((image) => !running.has(image));
  return `${old.join(", ")} → ${(added.length > 0 ? added : images).join(", ")}`;
}

interface Appearance {
  readonly mark: string;
  readonly label: string;
  readonly style: string;
}

/** Each state has a mark, a word and a colour: no state is shown by its colour alone. */
function appearanceOf({ health: { state, fault } }: Pod): Appearance {
  if (state === "gone") return { mark: "✕", label: "terminating", style: "bad" };
  if (state === "ready") return { mark: "●", label: "ready", style: "good" };
  return fault === undefined
    ? { mark: "○", label: "not ready", style: "busy" }
    : { mark: "○", label: fault, style: "bad" };
}

function showPod(pod: Pod, { name = "", updateRevision }: Partial<ZoneRow>): ComponentChild {
  const { mark, label, style } = appearanceOf(pod);
  const revision = pod.revision ?? "";
  const ordinal = pod.name.startsWith(`${name}-`) ? pod.name.slice(name.length + 1) : pod.name;
  const isNew = revision === updateRevision;
  return h(
    "li",
    { class: style, title: pod.name },
    h("span", { "aria-hidden": "true" }, `${mark} `),
    h("span", {}, ordinal),
    " ",
    h("span", { class: isNew ? "mono new" : "mono faint" }, shorten(name, revision)),
    ` ${label}`,
  );
}

const REVISION_LENGTH = 5;

/** `ingester-zone-a-5d4c8f7b9` -> `5d4c8`; the controllers of some tests name revisions otherwise. */
const shorten = (zone: string, revision: string): string =>
  (revision.startsWith(`${zone}-`) ? revision.slice(zone.length + 1) : revision).slice(0, REVISION_LENGTH);

function showProgress(
  { stepsLeft, startTime, lastStepTime, completionTime }: GroupProgress,
  now: number,
): ComponentChild[] {
  if (completionTime !== undefined)
    return ["Last rollout: began ", showTime(startTime, now), ", ended ", showTime(completionTime, now)];
  return [
    `${stepsLeft} ${stepsLeft === 1 ? "step" : "steps"} left, began `,
    showTime(startTime, now),
    ", last step ",
    showTime(lastStepTime, now),
  ];
}
