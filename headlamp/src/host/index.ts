/** The entry that Headlamp loads: registers the pages. Nothing is read before one of them is shown. */
import {
  type DetailsViewSectionProps,
  registerDetailsViewSection,
  registerRoute,
  registerSidebarEntry,
} from "@kinvolk/headlamp-plugin/lib";
import { createElement, type ReactElement } from "react";
import { nameOfGroup } from "../../../reconciler/group-status/name.ts";
import { LABELS } from "../../../reconciler/model/annotations.ts";
import { ClusterPage, GroupSection, ROUTES } from "./pages.ts";

registerSidebarEntry({
  parent: null,
  name: "zonewise",
  label: ROUTES.all,
  url: "/zonewise",
  icon: "mdi:layers-triple-outline",
});
registerRoute({
  path: "/zonewise",
  sidebar: "zonewise",
  name: ROUTES.all,
  exact: true,
  component: () => createElement(ClusterPage),
});
registerRoute({
  path: "/zonewise/:namespace/:name",
  sidebar: "zonewise",
  name: ROUTES.group,
  exact: true,
  component: () => createElement(ClusterPage),
});

/** The fields that are read of an object of Headlamp's. */
interface Shown {
  readonly kind?: string;
  readonly cluster?: string;
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

registerDetailsViewSection(({ resource }: DetailsViewSectionProps): ReactElement | null => {
  const { kind, cluster = "", metadata = {} } = (resource ?? {}) as Shown;
  const { namespace = "", labels = {} } = metadata;
  const group = kind === "StatefulSet" ? labels[LABELS.rolloutGroup] : undefined;
  if (group === undefined || cluster === "") return null;
  return createElement(GroupSection, { cluster, namespace, group, name: nameOfGroup(group) });
});
