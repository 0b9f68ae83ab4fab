/**
 * As much of Headlamp as a plugin sees, for a browser: `pluginLib`, with the requests as
 * @kinvolk/headlamp-plugin 0.14.0 makes them (lib/k8s/api/v1/clusterRequests), routes, and details of an object.
 */
import * as React from "preact/compat";

const { createElement: h, render, useEffect, useState } = React;
const routes = [];
const sections = [];
const entries = [];

async function clusterRequest(path, { timeout = 120_000, cluster, isJSON = true, ...rest } = {}) {
  const url = cluster ? `/clusters/${cluster}${path}` : path;
  const stop = new AbortController();
  const id = setTimeout(() => stop.abort(), timeout);
  let response = new Response(undefined, { status: 502, statusText: "Unreachable" });
  try {
    response = await fetch(url, { signal: stop.signal, credentials: "include", headers: {}, ...rest });
  } catch (error) {
    if (error.name === "AbortError")
      response = new Response(undefined, { status: 408, statusText: "Request timed-out" });
  } finally {
    clearTimeout(id);
  }
  if (response.ok) return isJSON ? await response.json() : response;
  const text = await response.text();
  let message = response.statusText;
  try {
    message += ` - ${JSON.parse(text).message}`;
  } catch {
    if (text) message += ` - ${text}`;
  }
  throw Object.assign(new Error(message), { status: response.status });
}

const clustersOf = (path) => /^\/c\/([^/]+)/.exec(path)?.[1].split("+") ?? [];
const settings = new URLSearchParams(location.search);
const listeners = new Set();
const history = {
  createHref: ({ pathname }) => pathname,
  push(path) {
    window.history.pushState({}, "", path);
    for (const listener of listeners) listener();
  },
};

/** The route that a path belongs to, with its parameters. */
function matchRoute(path) {
  const rest = path.replace(/^\/c\/[^/]+/, "");
  for (const route of routes) {
    const pattern = new RegExp(`^${route.path.replaceAll(/:(\w+)/g, "(?<$1>[^/]+)")}$`);
    const match = pattern.exec(rest);
    if (match) return { route, params: { ...match.groups } };
  }
  return undefined;
}

window.pluginLib = {
  React,
  ReactRedux: { useSelector: (select) => select({ filter: { namespaces: new Set(settings.getAll("filter")) } }) },
  ReactRouter: { useHistory: () => history, useParams: () => matchRoute(location.pathname)?.params ?? {} },
  ApiProxy: { clusterRequest },
  K8s: {
    useSelectedClusters: () => clustersOf(location.pathname),
    cluster: { getAllowedNamespaces: () => settings.getAll("allowed") },
  },
  Router: {
    createRouteURL(name, { cluster, ...params }) {
      const { path } = routes.find((route) => route.name === name);
      return `/c/${cluster}${path.replaceAll(/:(\w+)/g, (_, key) => encodeURIComponent(params[key]))}`;
    },
  },
  CommonComponents: {
    SectionBox: ({ title, children }) => h("section", { "aria-label": title }, h("h1", {}, title), children),
  },
  registerSidebarEntry: (entry) => entries.push(entry),
  registerRoute: (route) => routes.push(route),
  registerDetailsViewSection: (section) => sections.push(section),
};

/** The details of an object: `/c/one/details/apis/apps/v1/namespaces/default/statefulsets/x`. */
function Details() {
  const [object, setObject] = useState();
  const [cluster] = clustersOf(location.pathname);
  useEffect(() => {
    const path = location.pathname.replace(/^\/c\/[^/]+\/details/, "");
    void clusterRequest(path, { cluster }).then(setObject);
  }, []);
  if (!object) return undefined;
  const resource = { ...object, cluster };
  return h("div", {}, ...sections.map((Section, key) => h(Section, { key, resource })));
}

function App() {
  const [, setPath] = useState(location.pathname);
  useEffect(() => {
    const listener = () => setPath(location.pathname);
    listeners.add(listener);
    window.addEventListener("popstate", listener);
  }, []);
  const found = matchRoute(location.pathname);
  const links = entries.map(({ label, url }) =>
    h("a", { href: `/c/${clustersOf(location.pathname)[0]}${url}` }, label),
  );
  return h(
    "div",
    {},
    h("nav", { "aria-label": "Headlamp" }, ...links),
    h("main", {}, found ? h(found.route.component, { key: location.pathname }) : h(Details, {})),
  );
}

/** As Headlamp runs a plugin: its text, once `pluginLib` is there. */
const plugin = await (await fetch("/plugins/zonewise/main.js")).text();
document.head.append(Object.assign(document.createElement("script"), { textContent: plugin }));
document.body.className = settings.get("theme") ?? "light";
render(h(App, {}), document.querySelector("#root"));
