/** `zonewise evict --dry-run`: asks the API server, with all its webhooks and budgets, whether a pod may be evicted now. Nothing is evicted or reserved. */
import { absent, hasCode, messageOf } from "../../infra/errors.ts";
import { evictions, pods } from "../../infra/kubernetes/resources.ts";
import { readBudgetPod } from "../../reconciler/budget/budget-pod.ts";
import { explainError } from "../decide/explain-error.ts";
import { explainPod } from "../decide/explain.ts";
import { CliError, EXIT, usageError } from "../exit.ts";
import { gatherPodWorld } from "../gather/pod-world.ts";
import { renderAnswers } from "../output/answers.ts";
import { print } from "../output/print.ts";
import type { Command, Session } from "../session.ts";

/** Milliseconds: the port repeats what is answered with Retry-After until then. */
const ASK_MS = 5000;

export const evict: Command = {
  name: "evict",
  arguments: "<pod>",
  summary: "May the pod be evicted now? Asks the API server and its webhooks, and evicts nothing",
  flags: [{ flag: "--dry-run", summary: "required: this command evicts nothing; kubectl drain does" }],
  exits: { 0: "the eviction would be allowed", 1: "it would be refused" },
  completes: "pods",
  async run(session, { args: [name = ""], flags }) {
    if (flags["dryRun"] !== true) throw usageError("evict only asks: say --dry-run", "kubectl drain evicts, with respect for budgets");
    if (session.namespace === "") throw usageError("evict needs one namespace: say -n");
    if (name === "") throw usageError("evict needs the name of a pod");
    const object = await session.cluster.get(pods, { namespace: session.namespace, name }).catch(absent);
    if (!object) throw new CliError(`no pod ${JSON.stringify(name)} in namespace ${session.namespace}`);
    const pod = readBudgetPod(object);
    const refusal = await ask(session, pod);
    const { world, state } = await gatherPodWorld(session, pod);
    const [own] = explainPod(pod, state, world);
    const value = { pod: name, allowed: refusal === undefined, ...(refusal !== undefined && { refusal, explanation: own }) };
    print(session, value, () => {
      if (refusal === undefined) return `${name} may be evicted now (dry run)\n`;
      const why = own && !own.allowed ? renderAnswers({ kind: "pod", name, answers: [own] }, session.io.style, session.clock.now()) : "";
      return `${name} may not be evicted now (dry run): ${refusal}\n${why}`;
    });
    return refusal === undefined ? EXIT.ok : EXIT.no;
  },
};

/** The words of the refusal; undefined if it would be allowed. Throws if that could not be found out. */
async function ask(
  { cluster }: Session,
  { namespace, name, uid }: { namespace: string; name: string; uid: string },
): Promise<string | undefined> {
  const metadata = { namespace, name };
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions: { preconditions: { uid }, dryRun: ["All"] } } as const;
  try {
    await cluster.create(evictions, { ...metadata, subresource: "eviction", body }, { deadlineMs: ASK_MS });
    return undefined;
  } catch (error) {
    const isRefusal = hasCode(error, "Throttled", "Invalid") || (hasCode(error, "Forbidden") && explainError(error).hint === undefined);
    if (!isRefusal) throw error;
    return messageOf(error);
  }
}
