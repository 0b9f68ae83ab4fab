/** Ticks at rest: what a watch cannot tell is still looked for. */
import type { Mutation } from "../mutation.ts";

const REST = { file: "reconciler/run/pause.ts", tests: ["test/reconciler/run/pause.test.ts"] };
const SESSION = { file: "reconciler/run/session.ts", tests: ["test/reconciler/run/pause.test.ts"] };

export const REST_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a cluster with a mirroring zone is not at rest: its resource is not watched",
    ...REST,
    find: "scaling.mirror === undefined",
    replacement: "scaling.mirror !== null",
  },
  {
    breaks: "ticks go on for a while after a change",
    ...REST,
    find: "clock.monotonic() - session.newsAt >= AFTER_NEWS_MS",
    replacement: "clock.monotonic() >= session.newsAt",
  },
  {
    breaks: "without its watch a run does not rest",
    ...REST,
    find: "leftMs() > 0 && changes.isWatching()",
    replacement: "leftMs() > 0",
  },
  {
    breaks: "a run with a pending downscale does not rest",
    ...SESSION,
    find: "!isPending && result !== undefined",
    replacement: "result !== undefined",
  },
];
