/**
 * The script of the status page, as text: browsers run it, not we. Every 2 s it requests the page again and replaces
 * only the parts that differ, so that the focused element keeps the focus. Without an answer it says so: an old page
 * must not look like a new one.
 */
export const SCRIPT = `
"use strict";
const [pause, connection, headline, main] = ["#pause", "#connection", "#headline", "main"].map((one) => document.querySelector(one));
const html = new WeakMap();
let seen = new Date(), isPaused = false;
const partsOf = (root) => [...root.children];
const keyOf = (part, index) => part.id || part.tagName + index;
for (const root of [main, ...document.querySelectorAll("#reconciler, #problems")]) remember(root);
function remember(root) { html.set(root, root.outerHTML); for (const part of partsOf(root)) html.set(part, part.outerHTML); }
function replaceParts(before, after) {
  if (html.get(before) === after.outerHTML) return;
  html.set(before, after.outerHTML);
  const known = new Map(partsOf(before).map((part, index) => [keyOf(part, index), part]));
  const wanted = partsOf(after).map((part, index) => {
    const old = known.get(keyOf(part, index));
    if (old && html.get(old) === part.outerHTML) return old;
    const text = part.outerHTML, fresh = document.importNode(part, true);
    if (old) fresh.classList.add("changed");
    html.set(fresh, text);
    return fresh;
  });
  for (const part of partsOf(before)) if (!wanted.includes(part)) part.remove();
  wanted.forEach((part, index) => { if (before.children[index] !== part) before.insertBefore(part, before.children[index] ?? null); });
}
function show(page) {
  const focused = document.activeElement?.id;
  replaceParts(main, page.querySelector("main"));
  for (const id of ["reconciler", "problems"]) replaceParts(document.getElementById(id), page.getElementById(id));
  const text = page.querySelector("#headline").textContent;
  if (headline.textContent !== text) headline.textContent = text;
  document.title = page.title;
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus({ preventScroll: true });
}
async function update() {
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (!answer.ok && answer.status !== 404) throw new Error("status " + answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (isPaused) return;
    show(page);
    seen = new Date();
    connection.hidden = true;
  } catch (error) {
    if (connection.hidden) connection.textContent = "No answer (" + error.message + "): this is how it was at " + seen.toLocaleTimeString() + "..";
    connection.hidden = false;
  }
}
async function follow() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    if (!isPaused && document.visibilityState === "visible") await update();
  }
}
document.documentElement.classList.add("live");
main.parentElement.addEventListener("click", ({ target }) => {
  const button = target.closest?.(".copy");
  if (!button) return;
  void navigator.clipboard.writeText(button.previousElementSibling.textContent).then(() => {
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), 2000);
  });
});
pause.hidden = false;
pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
  if (!isPaused) void update();
});
document.addEventListener("visibilitychange", () => { if (!isPaused && document.visibilityState === "visible") void update(); });
void follow();
`;
