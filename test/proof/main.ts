/** Plays all scenes on the real node of KUBECONFIG and writes docs/proof.md and its picture: `npm run proof`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { findMissing, readMachine } from "../cluster/real-node/find-node.ts";
import { judge } from "./judge.ts";
import type { Scene } from "./measure.ts";
import { renderPage } from "./page.ts";
import { drawGaps } from "./picture.ts";
import * as scenes from "./scenes.ts";
import { openProof, type Proof } from "./stage.ts";

const DOCS = join(import.meta.dirname, "../../docs");
const EVICTIONS = 40;
/** Without Zonewise: enough to see what becomes of the writes. */
const CONTROL_EVICTIONS = 20;
/** The scenes take some 7 minutes, and twice as long on a machine under load. Then it gives up, and cleans up. */
const MAX_MS = 1_200_000;

async function playAll(proof: Proof): Promise<Scene[]> {
  const played = [
    await proof.play("rollout", () => scenes.rollOut(proof)),
    await proof.play(`drains, ${EVICTIONS} evictions`, () => scenes.drainAndKill(proof, EVICTIONS)),
    await proof.play("bad template", () => scenes.breakAndCure(proof)),
    await proof.play("scaling", () => scenes.scale(proof)),
  ];
  await proof.installation.remove();
  played.push(await proof.play("`RollingUpdate`", () => scenes.rollOutByKubernetes(proof), true));
  await scenes.createCoreBudgets(proof);
  played.push(
    await proof.play(
      `core budgets, ${CONTROL_EVICTIONS} evictions`,
      () => scenes.drain(proof, CONTROL_EVICTIONS),
      true,
    ),
  );
  return played;
}

const missing = findMissing(readMachine(process.env));
if (missing) throw new Error(missing);
const proof = await openProof(console.log);
let timer: NodeJS.Timeout | undefined;
try {
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${MAX_MS / 1000} s`)), MAX_MS);
  });
  const played = await Promise.race([playAll(proof), late]);
  const streams = proof.load.journals.map(({ acknowledged }) => acknowledged);
  writeFileSync(join(DOCS, "proof.svg"), drawGaps(played, streams));
  writeFileSync(join(DOCS, "proof.md"), renderPage(played, new Date()));
  const faults = played.flatMap(judge);
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
} finally {
  clearTimeout(timer);
  await proof.close();
}
// What a scene still waits for, after it gave up.
process.exit();
