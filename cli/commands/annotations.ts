/**
 * `zonewise retry` and `promote`: the annotations that make a failed gate ask again, or end the checks of a step
 * (§18.7). Each value counts once, so that repeating the command has no further effect.
 */
import { phasedRollouts, rolloutGates } from "../../infra/kubernetes/custom-resources.ts";
import { createGateLister } from "../../reconciler/gates/act/list-gates.ts";
import { RETRY_ANNOTATION, type Gate } from "../../reconciler/gates/gate.ts";
import { nextRetry } from "../../reconciler/gates/hold.ts";
import { ANNOTATIONS } from "../../reconciler/model/annotations.ts";
import { isSeen, type Phased } from "../decide/explain-phased.ts";
import { CliError, EXIT, type ExitCode } from "../exit.ts";
import { gatherPhased } from "../gather/records.ts";
import { findOnly, missing } from "../gather/suggest.ts";
import { print } from "../output/print.ts";
import type { Command, Input, Session } from "../session.ts";
import { change, DRY_RUN, type Written } from "./actions.ts";

/** The value of the annotation to write, undefined if none is needed, and the message for the user. */
interface Asked {
  readonly value?: string;
  readonly message: string;
}

export const retry: Command = {
  name: "retry",
  arguments: "<gate>",
  group: "Steer",
  summary: "Start the checks of a failed gate again",
  examples: [
    ["retry GATE", "start the checks of a failed gate again"],
    ["retry GATE --dry-run", "see whether you may"],
  ],
  flags: [DRY_RUN],
  exits: { 0: "done, or the gate has not failed" },
  async run(session, input) {
    const name = nameIn(input);
    const gates = (await listGates(session)).filter(({ ref }) => ref.name === name);
    const gate = findOnly(gates, ({ ref }) => ref.namespace, `gate ${name}`);
    if (!gate) throw await notFound(session, "gates", name);
    const object = { ...gate.ref, resource: rolloutGates, resourceVersion: gate.resourceVersion };
    return await annotate(session, input, { ...object, key: RETRY_ANNOTATION, ...askGate(gate) });
  },
};

export const promote: Command = {
  name: "promote",
  arguments: "<phasedrollout>",
  group: "Steer",
  summary: "Skip the checks of a PhasedRollout's current step",
  examples: [
    ["promote PHASEDROLLOUT", "skip the checks of the current step"],
    ["promote PHASEDROLLOUT --dry-run", "see which step that is"],
  ],
  flags: [DRY_RUN],
  exits: { 0: "done, or it was promoted already" },
  async run(session, input) {
    const name = nameIn(input);
    const rollouts = (await gatherPhased(session)).filter(({ rollout }) => rollout.name === name);
    const found = findOnly(rollouts, ({ rollout }) => rollout.namespace, `PhasedRollout ${name}`);
    if (!found) throw await notFound(session, "phasedrollouts", name);
    const { namespace, uid, resourceVersion } = found.rollout;
    const object = { resource: phasedRollouts, namespace, name, uid, resourceVersion };
    return await annotate(session, input, { ...object, key: ANNOTATIONS.promoteStep, ...askStep(found) });
  },
};

/** `gate/NAME`, as `kubectl get -o name` prints it, or a name alone. */
const nameIn = ({ args: [object = ""] }: Input): string => object.slice(object.lastIndexOf("/") + 1);

async function notFound(session: Session, what: "gates" | "phasedrollouts", name: string): Promise<CliError> {
  const where = session.namespace === "" ? "in any namespace" : `in namespace ${session.namespace}`;
  const kind = what === "gates" ? "gate" : "PhasedRollout";
  return await missing(session, { what, name, message: `no ${kind} ${JSON.stringify(name)} ${where}` });
}

const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

async function listGates(session: Session): Promise<readonly Gate[]> {
  const list = await createGateLister(session.clock, QUIET)(session.namespace, session);
  if ("error" in list) throw list.error;
  return list.gates;
}

/** Names alone may be the same in two namespaces. */
const show = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace}/${name}`;

function askGate({ ref, record, retry: asked }: Gate): Asked {
  const name = show(ref);
  if (!record?.stages.some(({ state }) => state === "Failed"))
    return { message: `${name} has not failed: there is nothing to retry` };
  const value = nextRetry(record);
  return asked === value
    ? { message: `${name} is already retried with the next tick` }
    : { value, message: `Retry of ${name} requested` };
}

function askStep(phased: Phased): Asked {
  const { status, promoteStep, targetRef } = phased.rollout;
  const name = show(phased.rollout);
  const step = status.rollingPodStatus;
  const isGoing = status.phase === "Rolling" || status.phase === "Stalled";
  if (!isSeen(phased))
    throw new CliError(`the reconciler has not seen the latest spec of ${name} yet`, { hint: "try again" });
  if (!isGoing || !step) return { message: `${name} is ${status.phase}: there is no step to promote` };
  const value = `${status.updateRevision}/${step.partition}`;
  if (promoteStep !== value)
    return { value, message: `${name} skips the checks of ${targetRef} at partition ${step.partition}` };
  if (step.promoted || status.promotedStep !== value)
    return { message: `${name} was promoted at partition ${step.partition} already` };
  // An earlier rollout to the same revision was promoted at the same step: only a new value asks again.
  const { namespace, name: rollout } = phased.rollout;
  throw new CliError(`${name} still has the annotation of an earlier rollout, which has no effect a second time`, {
    hint: `remove it, and run the command again after the next tick: kubectl -n ${namespace} annotate phasedrollout ${rollout} ${ANNOTATIONS.promoteStep}-`,
  });
}

interface Annotation extends Asked, Written {
  readonly key: string;
}

async function annotate(session: Session, { flags }: Input, annotation: Annotation): Promise<ExitCode> {
  const { key, value, message, namespace, name } = annotation;
  const dryRun = flags["dryRun"] === true;
  const body = { metadata: { annotations: { [key]: value } } };
  if (value !== undefined) await change(session, annotation, { body, type: "merge", dryRun });
  const changes = [message];
  print(
    session,
    { namespace, name, dryRun, changes },
    () => `${message}${dryRun && value !== undefined ? " (dry run)" : ""}\n`,
  );
  return EXIT.ok;
}
