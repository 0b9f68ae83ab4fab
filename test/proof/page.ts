/** docs/proof.md. */
import { availableParallelism, cpus, totalmem } from "node:os";
import type { Scene } from "./measure.ts";
import { MAX_GAP_MS } from "./judge.ts";

const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;

const renderRow = ({ name, from, to, acknowledged, lost, longestGapMs, zonesDown, pauseMs }: Scene): string =>
  `| ${name} | ${seconds(longestGapMs)} | ${acknowledged} | ${lost} | ${zonesDown} | ${seconds(to - from)} | ${seconds(pauseMs)} |`;

const renderTable = (scenes: readonly Scene[]): string =>
  [
    "| scene | longest gap | writes acknowledged | lost | zones down at once | took | writers stood still |",
    "|---|---|---|---|---|---|---|",
    ...scenes.map(renderRow),
  ].join("\n");

export function renderPage(scenes: readonly Scene[], now: Date): string {
  const machine = `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB`;
  return `# A real database lives through it

NATS JetStream, in three zones of two servers, under load while Zonewise rolls it out, scales it and judges its
evictions, and while Zonewise itself is killed; and the same without Zonewise. Lost is what was acknowledged and is not
there when all is read back.

![The longest time without an acknowledged write, second by second: with Zonewise, and without it](proof.svg)

## With Zonewise

${renderTable(scenes.filter(({ isControl }) => !isControl))}

## Without

${renderTable(scenes.filter(({ isControl }) => isControl))}

${machine}, Node ${process.version}, ${now.toISOString().slice(0, 10)}. Written by \`npm run proof\`, as root on Linux:
see [how](../test/plane/README.md#a-real-node).

## What was played

The [example](../examples/nats/README.md) as it is, on a real node: containers, Zonewise's image with its own
ServiceAccounts, webhooks and CronJob. Nine streams (six until the scaling), each with three copies, one a zone, and one
writer and one reader. A writer numbers its messages, waits for each acknowledgement, and sends a message again under the
same id if there is none within a second; a reader has to see each once, in order. The longest gap is the longest time
between two acknowledgements of any stream.

| scene | what happens |
|---|---|
| rollout | a new template for all zones at once |
| drains | three drains at once, one a zone, retried as \`kubectl drain\` does, until so many servers were evicted |
| bad template | servers that end at once; after 15 s the template before |
| scaling | two, three, two servers a zone, by the leader; each server that goes hands its streams over |
| \`RollingUpdate\` | without Zonewise: the new template, and Kubernetes replaces the servers of each zone by itself |
| core budgets | without Zonewise: the same drains, half as long, under one PodDisruptionBudget a zone |

In the middle of each scene with Zonewise, the reconciler and one of the two functions are killed (\`SIGKILL\`).

## What is allowed

Lost: 0. Zones down at once: 1. Gap: at most ${seconds(MAX_GAP_MS)}. A stream's leader hands over before its server ends (lame
duck), which takes milliseconds. If it cannot, its followers wait for 4 to 9 s until they elect another
(\`minElectionTimeout\`, \`maxElectionTimeout\` in nats-server's \`server/raft.go\`), and a writer sends again after 1 s.

## What it does not show

All servers are on one machine, so that zones share its disk and its processor, and data is written without \`fsync\` for
each message, as JetStream does by default: a power failure of all zones at once is another subject. Drains are
\`kubectl drain\`'s requests, as the machine has one node.
`;
}
