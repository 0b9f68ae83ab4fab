/** The README's example of a rollout that is blocked, played line by line on the embedded cluster. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { openTerminal } from "../cli/stage.ts";
import { NEXT_COMMANDS } from "../demo/next-commands.ts";
import { dig, listOf, put } from "../emulator/objects.ts";
import { setStatusStage, startSession } from "../reconciler/group-status/act/status-stage.ts";
import { deploy } from "../reconciler/stage.ts";
import { readPage } from "./pages.ts";

/** The commands of the example, without what they say at their ends. */
const README = readPage("README.md");
const LINES = [...README.matchAll(/^ {4}(?<command>(?:kubectl|npx --no --) .*ingester.*?)(?: +#.*)?$/gm)].map(
  ({ groups }) => groups?.["command"] ?? "",
);

it("the README's example is what the demonstration proposes at its end", () => {
  assert.ok(NEXT_COMMANDS.every((line) => README.includes(`\n    ${line}\n`)));
  assert.equal(LINES.length, NEXT_COMMANDS.length);
});

it("the README's example blocks a rollout, and its last lines cure it", { timeout: 60_000 }, async (t) => {
  const stage = await setStatusStage();
  const { store } = stage.emulator;
  const session = startSession(stage);
  t.after(async () => {
    await session.end();
    await stage.close();
  });
  const { run } = await openTerminal(t, stage);
  const tick = async (seconds: number): Promise<void> => {
    for (let i = 0; i < seconds; i++) {
      await session.tick();
      await stage.time.advance(1000);
    }
  };
  for (const image of ["app:1", "app:2"]) {
    deploy(stage, image);
    await tick(60);
  }

  /** The answer of the CLI; a wait goes on while the reconciler ticks. */
  async function zonewise(words: string): Promise<string> {
    let isOver = false;
    const running = run(words).finally(() => void (isOver = true));
    for (let i = 0; i < 400 && !isOver; i++) await tick(1);
    const { code, out, err } = await running;
    return `${code} ${out}${err}`;
  }
  const COMMANDS: readonly (readonly [RegExp, (...words: string[]) => unknown])[] = [
    [
      /^kubectl annotate pod (\S+) (\S+)=(\S+)$/,
      (pod = "", key = "", value = "") => {
        const found = store.get("pods", "default", pod) ?? assert.fail(pod);
        store.update("pods", put(found, ["metadata", "annotations", key], value));
      },
    ],
    [/^kubectl rollout undo statefulset ingester-zone-(\w)$/, (zone = "") => deploy(stage, "app:1", { zones: [zone] })],
    [/^kubectl delete pod (\S+)$/, (pod = "") => store.remove("pods", "default", pod)],
    [/^npx --no -- zonewise (.*)$/, async (words = "") => await zonewise(words)],
  ];
  const imagesOfA = (): unknown[] =>
    store.list("pods", "default").flatMap((pod) => {
      const [container] = listOf(dig(pod, "spec", "containers"));
      return pod.metadata.name.startsWith("ingester-zone-a-") ? [dig(container, "image")] : [];
    });
  const answers: { readonly text: string; readonly images: readonly unknown[] }[] = [];
  for (const line of LINES) {
    const [pattern, play] = COMMANDS.find(([pattern]) => pattern.test(line)) ?? assert.fail(`nobody plays: ${line}`);
    const text = await play(...(pattern.exec(line)?.slice(1) ?? []));
    if (typeof text === "string") answers.push({ text, images: imagesOfA() });
    await tick(3);
  }
  const [explained, done] = answers;
  assert.match(explained?.text ?? "", /^1 [^]* fix .*\n +kubectl -n default delete pod ingester-zone-b-1/);
  assert.deepEqual(explained?.images, ["app:2", "app:2", "app:2"]);
  assert.match(done?.text ?? "", /^0 .*all zones are updated and ready\n$/s);
  assert.deepEqual(done?.images, ["app:1", "app:1", "app:1"]);
});
