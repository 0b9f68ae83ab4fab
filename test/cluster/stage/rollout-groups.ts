/** RolloutGroups on the real control plane, as kubectl sees them. */
import assert from "node:assert/strict";
import { type KubectlResult, runKubectl } from "./kubectl.ts";

/**
 * `kubectl wait` for a condition of the group. The first tick may not have made the group yet, which `kubectl wait` for
 * a condition takes for an error.
 */
export async function waitFor(namespace: string, condition: string, group = "cache"): Promise<KubectlResult> {
  const wait = (what: string): Promise<KubectlResult> =>
    runKubectl(["-n", namespace, "wait", `--for=${what}`, "--timeout=180s", `rolloutgroup/${group}`]);
  const made = await wait("create");
  return made.code === 0 ? wait(`condition=${condition}`) : made;
}

/** The cells of the group's row in `kubectl get rolloutgroups`, by column. */
export async function readRow(namespace: string, group = "cache"): Promise<Readonly<Record<string, string>>> {
  const { text } = await runKubectl(["-n", namespace, "get", "rolloutgroups", "-o", "wide"]);
  const [head = "", ...rows] = text.split("\n");
  const row = rows.find((line) => line.startsWith(`${group} `)) ?? assert.fail(text);
  const columns = [...head.matchAll(/\S+\s*/g)].map(
    ({ 0: name, index }) => [name.trim(), index, index + name.length] as const,
  );
  return Object.fromEntries(
    columns.map(([name, from, to]) => [name, row.slice(from, name === "AGE" ? undefined : to).trim()]),
  );
}
