/** The status page as HTML. It renders what is recorded and derives nothing; preact escapes every text. Pure. */
import { h, type ComponentChild } from "preact";
import { renderToString } from "preact-render-to-string";
import type { PageRecords } from "./records.ts";
import { SCRIPT } from "./script.ts";
import { type PageView, sayHeadline, showProblems, showSections } from "./sections.ts";
import { showReconciler } from "./show-tables.ts";
import { STYLE } from "./style.ts";
import { showUnseen } from "./unseen.ts";

/** Script and style are elements of the page, which its Content-Security-Policy names by their hashes. */
export function renderPage(view: PageView): string {
  const headline = sayHeadline(view);
  const html = h(
    "html",
    { lang: "en" },
    h(
      "head",
      {},
      h("meta", { charSet: "utf-8" }),
      h("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
      h("title", {}, `${headline} – Zonewise`),
      h("link", { rel: "icon", href: "data:," }),
      h("style", { dangerouslySetInnerHTML: { __html: STYLE } }),
    ),
    h(
      "body",
      {},
      showHeader(view.records, headline),
      h("main", {}, ...showSections(view)),
      h("script", { dangerouslySetInnerHTML: { __html: SCRIPT } }),
    ),
  );
  return `<!doctype html>${showUnseen(renderToString(html))}`;
}

function showHeader(records: PageRecords, headline: string): ComponentChild {
  return h(
    "header",
    {},
    h("h1", {}, "Zonewise"),
    h("p", { id: "headline", role: "status" }, headline),
    h("button", { id: "pause", type: "button", hidden: true, "aria-pressed": "false" }, "Pause updates"),
    h("noscript", {}, h("p", {}, "Without JavaScript this page stays as it is: reload it.")),
    h("p", { id: "connection", class: "problem", role: "alert", hidden: true }),
    h("div", { id: "reconciler" }, showReconciler(records.reconciler, records.readAt)),
    h("div", { id: "problems" }, ...showProblems(records)),
  );
}
