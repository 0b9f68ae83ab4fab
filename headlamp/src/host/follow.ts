/** Shows one cluster in an element of Headlamp's, in its own shadow root, and follows it. */
import { type ComponentChild, h, render } from "preact";
import type { Focus } from "../../../functions/status/gather.ts";
import { systemClock } from "../../../infra/clock.ts";
import { createServerClock } from "../../../infra/server-clock.ts";
import { type HostRequest, openPort } from "../cluster.ts";
import { createReading } from "../gather.ts";
import { type ClusterRecords, NOTHING_READ } from "../records.ts";
import { styleOf } from "../view/style.ts";

export interface Following {
  readonly request: HostRequest;
  readonly cluster: string;
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  readonly focus: Focus;
  readonly show: (records: ClusterRecords) => ComponentChild;
  /** Goes to the target of a link; false if it is no page of the plugin's. */
  readonly goTo: (href: string) => boolean;
}

/** Milliseconds between the end of a reading and the next one: each costs the user's own requests. */
const EVERY_MS = 5000;

/** Follows until the returned function is called. A hidden page is not read. */
export function follow(element: HTMLElement, following: Following): () => void {
  const { request, cluster, namespaces, focus, show, goTo } = following;
  const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
  const stop = new AbortController();
  const { signal } = stop;
  const clock = createServerClock(systemClock);
  const open = () => openPort({ request, cluster, clock: systemClock, onDate: clock.follow });
  const read = createReading({ open, clock, namespaces });

  function draw(records: ClusterRecords): void {
    if (!signal.aborted) render([h("style", {}, styleOf(isDark(element))), show(records)], root);
  }

  function click(event: Event): void {
    const { button, ctrlKey, metaKey, shiftKey } = event as MouseEvent;
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    const isPlain = button === 0 && !ctrlKey && !metaKey && !shiftKey;
    if (link && isPlain && goTo(link.getAttribute("href") ?? "")) event.preventDefault();
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      if (document.visibilityState === "visible") draw(await read(focus));
      await systemClock.sleep(EVERY_MS, signal);
    }
  }

  root.addEventListener("click", click, { signal });
  draw(NOTHING_READ);
  void run();
  return () => {
    stop.abort();
    render(null, root);
  };
}

/** Judges by the colour behind the element: themes come from Headlamp and from other plugins. */
function isDark(element: HTMLElement): boolean {
  for (let one: HTMLElement | null = element; one; one = one.parentElement) {
    const [red = 255, green = 255, blue = 255, alpha = 1] = (
      getComputedStyle(one).backgroundColor.match(/[\d.]+/g) ?? []
    ).map(Number);
    if (alpha > 0.5) return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
  }
  return false;
}
