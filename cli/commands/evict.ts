/**
 * `zonewise evict --dry-run`: asks the API server, with all its webhooks and budgets, whether a pod may be evicted now.
 * Nothing is evicted or reserved.
 */
import { absent, hasCode, messageOf } from "../../infra/errors.ts";
import { evictions, pods } from "../../infra/kubernetes/resources.ts";
import { readBudgetPod, type BudgetPod } from "../../reconciler/budget/budget-pod.ts";
import type { Guard } from "../../reconciler/budget/guard.ts";
import type { Explanation } from "../decide/answer.ts";
import { explainError } from "../decide/explain-error.ts";
import { explainRefusal } from "../decide/explain-group.ts";
import { EXIT, usageError } from "../exit.ts";
import { createGuards, gatherGuard } from "../gather/guard.ts";
import { gatherPodWorld } from "../gather/pod-world.ts";
import { missing } from "../gather/suggest.ts";
import { renderAnswers } from "../output/answers.ts";
import { print } from "../output/print.ts";
import { wrapAfter } from "../output/table.ts";
import type { Command, Session } from "../session.ts";

/** Milliseconds: until then, the port repeats calls that are answered with Retry-After. */
const ASK_MS = 5000;

export const evict: Command = {
  name: "evict",
  arguments: "<pod>",
  summary: "May the pod be evicted now? Asks the API server and its webhooks, and evicts nothing",
  flags: [{ flag: "--dry-run", summary: "required: this command evicts nothing; kubectl drain does" }],
  exits: { 0: "the eviction would be allowed", 1: "it would be refused, or allowed without that its budget is asked" },
  completes: "pods",
  async run(session, { args: [name = ""], flags }) {
    if (flags["dryRun"] !== true)
      throw usageError("evict only asks: say --dry-run", "kubectl drain evicts, with respect for budgets");
    if (session.namespace === "") throw usageError("evict needs one namespace: say -n");
    if (name === "") throw usageError("evict needs the name of a pod");
    const object = await session.cluster.get(pods, { namespace: session.namespace, name }).catch(absent);
    if (!object)
      throw await missing(session, {
        what: "pods",
        name,
        message: `no pod ${JSON.stringify(name)} in namespace ${session.namespace}`,
      });
    const pod = readBudgetPod(object);
    const refusal = await ask(session, pod);
    const open = refusal === undefined ? await findOpen(session, pod) : undefined;
    if (open) {
      const { reason, message, remedy } = open;
      print(
        session,
        { pod: name, allowed: true, guard: { reason, message, remedy } },
        () =>
          `${wrapAfter(`${name} would be evicted, and no disruption budget is asked (dry run): ${message}`, 0, session.io)}\n       ${remedy}\n`,
      );
      return EXIT.no;
    }
    if (refusal === undefined) {
      print(session, { pod: name, allowed: true }, () => `${name} may be evicted now (dry run)\n`);
      return EXIT.ok;
    }
    const explanation = await explainIt(session, pod, refusal);
    print(session, { pod: name, allowed: false, refusal, ...(explanation && { explanation }) }, () => {
      const answers = explanation ? [explanation] : [];
      const why =
        answers.length > 0 ? renderAnswers({ kind: "pod", name, answers }, session.io, session.clock.now()) : "";
      return `${wrapAfter(`${name} may not be evicted now (dry run): ${refusal}`, 0, session.io)}\n${why}`;
    });
    return EXIT.no;
  },
};

/** The reason why no webhook asks the pod's budget; undefined if one does, or if that could not be seen. */
async function findOpen(session: Session, pod: BudgetPod): Promise<Guard | undefined> {
  const guard = await gatherPodWorld(session, pod)
    .then(({ world }) => gatherGuard(createGuards(session), pod, world))
    .catch(() => undefined);
  return guard?.state === "open" ? guard : undefined;
}

/**
 * Undefined if no rule of ours says no, or if the objects for the explanation cannot be read: the refusal stands all
 * the same.
 */
async function explainIt(session: Session, pod: BudgetPod, refusal: string): Promise<Explanation | undefined> {
  try {
    return explainRefusal(refusal, pod, await gatherPodWorld(session, pod));
  } catch (error) {
    session.io.warn(`note: the rule behind it is left out: ${explainError(error).message}\n`);
    return undefined;
  }
}

/** The message of the refusal; undefined if the eviction would be allowed. Throws if that could not be found out. */
async function ask(
  { cluster }: Session,
  { namespace, name, uid }: { namespace: string; name: string; uid: string },
): Promise<string | undefined> {
  const metadata = { namespace, name };
  const body = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata,
    deleteOptions: { preconditions: { uid }, dryRun: ["All"] },
  } as const;
  try {
    await cluster.create(evictions, { ...metadata, subresource: "eviction", body }, { deadlineMs: ASK_MS });
    return undefined;
  } catch (error) {
    const isRefusal =
      hasCode(error, "Throttled", "Invalid") || (hasCode(error, "Forbidden") && explainError(error).hint === undefined);
    if (!isRefusal) throw error;
    return messageOf(error);
  }
}
