/**
 * Dry-run evictions of a pod, two at a time, as the administrator of KUBECONFIG: evictions.ts NAMESPACE POD SECONDS.
 * Prints the answers and their times; exits with 1 if one was neither allowed nor denied by a budget.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { connectAdmin } from "../../cluster/stage/client.ts";
import { evict } from "../../cluster/stage/evict.ts";

const [namespace = "", pod = "", seconds = ""] = process.argv.slice(2);
const admin = await connectAdmin(process.env["KUBECONFIG"]);
const codes = new Map<number, number>();
const times: number[] = [];
const failures: string[] = [];
const end = performance.now() + Number(seconds) * 1000;

async function evictRepeatedly(): Promise<void> {
  while (performance.now() < end) {
    const begin = performance.now();
    const { code, message } = await evict({ call: admin.call, namespace }, pod, {
      query: "?dryRun=All",
      deleteOptions: { dryRun: ["All"] },
    });
    times.push(performance.now() - begin);
    codes.set(code, (codes.get(code) ?? 0) + 1);
    if (code !== 201 && code !== 429) failures.push(`${new Date().toISOString()} ${code} ${message.slice(0, 300)}`);
    await sleep(20);
  }
}

await Promise.all([evictRepeatedly(), evictRepeatedly()]);
admin.close();
times.sort((a, b) => a - b);
const at = (share: number): string => `${Math.round(times[Math.floor((times.length - 1) * share)] ?? 0)} ms`;
const answers = [...codes].map(([code, count]) => `${code}: ${count}`).join(", ");
process.stdout.write(
  `answers ${answers}; failed ${failures.length}; median ${at(0.5)}, 99 % ${at(0.99)}, longest ${at(1)}\n`,
);
for (const failure of failures.slice(0, 5)) process.stdout.write(`${failure}\n`);
process.exitCode = failures.length > 0 ? 1 : 0;
