/** An embedded cluster with configurations to inject into, and the certificate job on it. */
import { setStage, type Stage } from "../../../reconciler/stage.ts";
import * as on from "../stage.ts";

export async function setJobStage(): Promise<Stage> {
  const stage = await setStage();
  on.addHook(stage.emulator.store, on.VALIDATING, "no-downscale", { entries: 2 });
  on.addHook(stage.emulator.store, on.MUTATING, "prepare-downscale");
  return stage;
}

/** Tools on the current stage: run the job, and read its results. */
export function jobOn(stage: () => Stage) {
  const run = (more?: Parameters<typeof on.runJob>[2]): on.Run & { calls: string[] } => {
    const { cluster, calls } = stage().connect();
    return { ...on.runJob(cluster, on.movingClock(stage().time), more), calls };
  };
  const bundles = (): string[] => [
    ...on.bundlesOf(stage().emulator.store, on.VALIDATING, "no-downscale"),
    ...on.bundlesOf(stage().emulator.store, on.MUTATING, "prepare-downscale"),
  ];
  const secret = (): Readonly<Record<string, string>> => on.secretOf(stage().emulator.store);
  const text = (key: string): string => secret()[key] ?? "";
  return { run, bundles, secret, text };
}
