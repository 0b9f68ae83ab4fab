/**
 * A rollout group on the status page: what blocks it, its zones and pods, and its plan, as its RolloutGroup and its
 * pods record them. Pure.
 */
import { h, type ComponentChild } from "preact";
import type { Block, RemainingStep, GroupProgress, ZoneRow } from "../../../reconciler/group-status/status.ts";
import type { Pod } from "../../../reconciler/model/pod.ts";
import { type PageGroup, keyOf, type PodsByZone } from "./records.ts";
import { showTime } from "./time.ts";

export interface GroupSection {
  readonly group: PageGroup;
  /** Undefined if they were not read. */
  readonly pods: PodsByZone | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The address of a group's own page. */
export const addressOf = (group: PageGroup): string =>
  `?namespace=${encodeURIComponent(group.namespace)}&group=${encodeURIComponent(group.name)}`;

export function showGroup({ group, pods, now }: GroupSection): ComponentChild {
  const { message = "", blocked = [], zones = [], plan = [], progress } = group.status;
  const isSaid = blocked.some((block) => block.message === message);
  const id = `group ${keyOf(group)}`.replaceAll(" ", "-");
  return h(
    "section",
    { id, class: "group", "aria-labelledby": `${id}-name` },
    showTitle(group, `${id}-name`),
    !isSaid && h("p", {}, message),
    blocked.length > 0 && h("ul", { class: "blocks" }, ...blocked.map((block) => showBlock(block, now))),
    showZones(group, zones, pods),
    progress && h("p", { class: "faint" }, ...showProgress(progress, now)),
    plan.length > 0 && [h("h4", {}, "Plan"), h("ol", { class: "plan" }, ...plan.map(showStep))],
  );
}

function showTitle(group: PageGroup, id: string): ComponentChild {
  const { phase = "Unknown" } = group.status;
  return h("h3", { id }, h("a", { href: addressOf(group), id: `${id}-link` }, keyOf(group)), " ", showPhase(phase));
}

export const showPhase = (phase: string): ComponentChild => h("span", { class: `phase ${phase.toLowerCase()}` }, phase);

function showBlock({ reason, message, objects, since, nextCheck }: Partial<Block>, now: number): ComponentChild {
  const names = (objects ?? []).map(({ kind, name }) => `${kind} ${name}`).join(", ");
  return h(
    "li",
    {},
    h("strong", {}, reason),
    ` since `,
    showTime(since, now),
    nextCheck !== undefined && [", until ", showTime(nextCheck, now)],
    h("p", {}, message),
    names !== "" && h("p", { class: "faint" }, names),
  );
}

function showZones(
  group: PageGroup,
  zones: readonly ZoneRow[],
  pods: PodsByZone | undefined,
): ComponentChild | undefined {
  if (zones.length === 0) return undefined;
  const head = ["Zone", "Revision", "Updated", "Ready", "Pods"].map((name) => h("th", { scope: "col" }, name));
  return h(
    "div",
    { class: "scroll", tabIndex: 0, role: "region", "aria-label": `Zones of ${keyOf(group)}` },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...head)),
      h("tbody", {}, ...zones.map((zone) => showZone(zone, pods?.get(zone.name)))),
    ),
  );
}

function showZone(zone: Partial<ZoneRow>, pods: readonly Pod[] | undefined): ComponentChild {
  const {
    name = "",
    currentRevision = "",
    updateRevision = "",
    replicas,
    updated,
    ready,
    paused,
    lastDownscale,
  } = zone;
  const [current, next] = [shorten(name, currentRevision), shorten(name, updateRevision)];
  const notes = [
    ...(paused ? ["paused"] : []),
    ...(lastDownscale === undefined ? [] : [`last downscale ${lastDownscale}`]),
  ].join(", ");
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name, notes !== "" && h("span", { class: "faint" }, ` ${notes}`)),
    h("td", { class: "mono" }, current === next ? next : `${current} → ${next}`),
    h("td", {}, `${updated}/${replicas}`),
    h("td", {}, `${ready}/${replicas}`),
    h("td", {}, pods ? h("ul", { class: "pods" }, ...pods.map((pod) => showPod(pod, zone))) : `${zone.pods} pods`),
  );
}

interface Appearance {
  readonly mark: string;
  readonly label: string;
  readonly style: string;
}

/** A mark, a word and a colour each: no state is told by its colour alone. */
function appearanceOf({ terminating, ready, broken }: Pod): Appearance {
  if (terminating) return { mark: "✕", label: "terminating", style: "bad" };
  if (ready) return { mark: "●", label: "ready", style: "good" };
  return broken === undefined
    ? { mark: "○", label: "not ready", style: "busy" }
    : { mark: "○", label: broken, style: "bad" };
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
  { stepsLeft, startTime, lastStepTime, estimatedCompletionTime, completionTime }: GroupProgress,
  now: number,
) {
  if (completionTime !== undefined)
    return ["Last rollout: began ", showTime(startTime, now), ", ended ", showTime(completionTime, now)];
  return [
    `${stepsLeft} ${stepsLeft === 1 ? "step" : "steps"} left, began `,
    showTime(startTime, now),
    ", last step ",
    showTime(lastStepTime, now),
    ...(estimatedCompletionTime === undefined ? [] : [", estimated end ", showTime(estimatedCompletionTime, now)]),
  ];
}

function showStep({ action, zone, count, atOnce, pods = [] }: RemainingStep): ComponentChild {
  if (action === "FinishZone") return h("li", {}, `record ${zone} as updated`);
  const more = (count ?? 0) - pods.length;
  const names = pods.length === 0 ? "" : `: ${pods.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return h("li", {}, `replace ${count} ${count === 1 ? "pod" : "pods"} of ${zone}, ${atOnce} at once${names}`);
}
