/** The plugin's components: one element each, which preact fills. */
import { ApiProxy, K8s, Router } from "@kinvolk/headlamp-plugin/lib";
import { SectionBox } from "@kinvolk/headlamp-plugin/lib/CommonComponents";
import { createElement, type ReactElement, useEffect, useRef } from "react";
import { useSelector } from "react-redux";
import { useHistory, useParams } from "react-router-dom";
import type { ComponentChild } from "preact";
import { keyOf, type PageGroup } from "../../../functions/status/view/records.ts";
import type { ClusterRecords } from "../records.ts";
import { showCluster, showOneGroup } from "../view/show-cluster.ts";
import { follow } from "./follow.ts";

/** Names of the routes. */
export const ROUTES = { all: "Zonewise", group: "Zonewise group" } as const;

interface Links {
  readonly addressOf: (group: PageGroup | undefined) => string;
  readonly goTo: (href: string) => boolean;
}

interface BoxProps {
  readonly cluster: string;
  readonly focus: string | undefined;
  /** The namespaces that are read; those that the user has chosen by default. */
  readonly namespace?: string;
  readonly show: (records: ClusterRecords, links: Links) => ComponentChild;
}

/** The namespaces that the user has chosen in Headlamp, or may see by the cluster's settings; "" stands for all. */
function useNamespaces(cluster: string): readonly string[] {
  const chosen = useSelector(({ filter }) => filter.namespaces);
  const all = chosen.size > 0 ? [...chosen] : K8s.cluster.getAllowedNamespaces(cluster);
  return all.length > 0 ? all.toSorted() : [""];
}

/** Links that Headlamp follows without a reload, with addresses that may be opened elsewhere, too. */
function useLinks(cluster: string): Links {
  const history = useHistory();
  const paths = new Map<string, string>();
  return {
    addressOf(group) {
      const { all, group: one } = ROUTES;
      const path = group
        ? Router.createRouteURL(one, { cluster, namespace: group.namespace, name: group.name })
        : Router.createRouteURL(all, { cluster });
      const href = history.createHref({ pathname: path });
      paths.set(href, path);
      return href;
    },
    goTo(href) {
      const path = paths.get(href);
      if (path !== undefined) history.push(path);
      return path !== undefined;
    },
  };
}

function Box({ cluster, focus, namespace, show }: BoxProps): ReactElement {
  const element = useRef<HTMLDivElement>(null);
  const chosen = useNamespaces(cluster);
  const namespaces = namespace === undefined ? chosen : [namespace];
  const links = useLinks(cluster);
  useEffect(() => {
    if (!element.current) return undefined;
    const { goTo } = links;
    const showWithLinks = (records: ClusterRecords) => show(records, links);
    const request = ApiProxy.clusterRequest;
    return follow(element.current, { request, cluster, namespaces, focus, show: showWithLinks, goTo });
  }, [cluster, focus, namespaces.join(",")]);
  return createElement("div", { ref: element, style: { marginBottom: "1rem" } });
}

/** One box for each cluster that is chosen in Headlamp. */
export function ClusterPage(): ReactElement {
  const { namespace = "", name } = useParams<{ namespace?: string; name?: string }>();
  const focus = name === undefined ? undefined : keyOf({ namespace, name });
  const boxes = K8s.useSelectedClusters().map((cluster) =>
    createElement(Box, {
      key: cluster,
      cluster,
      focus,
      show: (records, { addressOf }) => showCluster({ name: cluster, records, focus, addressOf }),
    }),
  );
  return createElement(SectionBox, { title: ROUTES.all, headerProps: { headerStyle: "main" } }, ...boxes);
}

export interface GroupProps {
  readonly cluster: string;
  readonly namespace: string;
  /** The value of `rollout-group`. */
  readonly group: string;
  /** The name of its RolloutGroup, if that is known. */
  readonly name: string;
}

/** One group, below the details of another object. */
export function GroupSection({ cluster, namespace, group, name }: GroupProps): ReactElement {
  const box = createElement(Box, {
    cluster,
    namespace,
    focus: keyOf({ namespace, name }),
    show: (records, { addressOf }) => showOneGroup({ name: cluster, namespace, group, records, addressOf }),
  });
  return createElement(SectionBox, { title: `${ROUTES.all}: rollout group ${group}` }, box);
}
