/** Ticks at rest: what a watch cannot tell is still looked for. */
import type { Mutation } from "../mutation.ts";

const REST = { file: "reconciler/run/rest.ts", tests: ["test/reconciler/run/rest.test.ts"] };
const SESSION = { file: "reconciler/run/session.ts", tests: ["test/reconciler/run/rest.test.ts"] };

export const REST_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a cluster with a mirroring zone is not at rest: its resource is not watched",
    ...REST,
    find: "scaling.mirror === undefined",
    replacement: "scaling.mirror !== null",
  },
  {
    breaks: "ticks go on for a while after a change",
    ...SESSION,
    find: "clock.monotonic() - newsAt >= AFTER_NEWS_MS",
    replacement: "clock.monotonic() >= newsAt",
  },
  {
    breaks: "without its watch a run does not rest",
    ...SESSION,
    find: "leftMs() > 0 && changes.isWatching()",
    replacement: "leftMs() > 0",
  },
  {
    breaks: "a run with a pending downscale does not rest",
    ...SESSION,
    find: "const atRest = !isPending && result",
    replacement: "const atRest = result",
  },
];
