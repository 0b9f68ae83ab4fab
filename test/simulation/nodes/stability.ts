/** Once faults and people have stopped: no node keeps a mark of ours, and each has its update, or a reason not to. */
import { CORDONED_BY, EXCLUDED_BY, LB_LABEL } from "../../../reconciler/nodes/shadow.ts";
import { PROTECTED_BY } from "../../../reconciler/nodes/node.ts";
import { dig, type Fields, isTrue, listOf, textOf } from "../../emulator/objects.ts";
import type { Store } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import type { Fleet } from "./fleet.ts";
import type { NodeHost } from "./node-host.ts";
import { POLICIES, POLICY, SHADOWS } from "./shape.ts";

/** What may keep a node for good: its pods could go nowhere else. */
const FOR_GOOD: ReadonlySet<string> = new Set(["NoPlaceForPods", "DrainBlocked"]);

/** `isHeld`: a check keeps a rollout of the pods for good. */
export function unsettledNodes(
  store: Pick<Store, "get" | "list">,
  { hosts, offered }: Fleet,
  isHeld: boolean,
): string[] {
  const policy = store.get(POLICIES, undefined, POLICY);
  const waiting = new Map(
    listOf(dig(policy, "status", "waiting")).map((one) => [dig(one, "node"), textOf(dig(one, "reason"))]),
  );
  const mayWait = ({ name }: NodeHost): boolean => {
    const reason = waiting.get(name) ?? "";
    // Between two one-shots no other reason is told.
    const isClosed = reason === "WindowClosed" && dig(policy, "status", "campaign") !== undefined;
    return isClosed || FOR_GOOD.has(reason) || (isHeld && reason === "RolloutInProgress");
  };
  const names = new Set(hosts.map(({ name }) => `brs-${name}`));
  return [
    ...hosts.flatMap((host) => [...unlikeBefore(store, host), ...unsettledShadow(store, host)]),
    ...hosts
      .filter((host) => host.model.facts().version !== offered() && !mayWait(host))
      .map(({ name }) => `${name} has not its update: ${waiting.get(name) ?? "for no reason that is named"}`),
    ...store
      .list(SHADOWS, NAMESPACE)
      .filter(({ metadata }) => !names.has(metadata.name))
      .map(({ metadata }) => `${metadata.name} is nobody's shadow`),
    ...listOf(dig(policy, "status", "active")).map((one) => `${String(dig(one, "node"))} keeps its slot`),
    ...(dig(policy, "status", "frozen") === undefined ? [] : ["the policy is frozen"]),
  ];
}

const MARKS = [CORDONED_BY, EXCLUDED_BY, PROTECTED_BY, "karpenter.sh/do-not-disrupt"];

/** It serves, and nothing on it is ours. */
function unlikeBefore(store: Pick<Store, "get" | "list">, { name }: NodeHost): string[] {
  const node = store.get("nodes", undefined, name);
  if (!node || !isTrue(node, "Ready")) return [`${name} is not Ready`];
  const { annotations = {}, labels = {} } = node.metadata;
  return [
    ...MARKS.filter((mark) => annotations[mark] !== undefined).map((mark) => `${name} keeps ${mark}`),
    ...(labels[LB_LABEL] === undefined ? [] : [`${name} is left out by load balancers`]),
    ...(dig(node, "spec", "unschedulable") === true ? [`${name} is cordoned`] : []),
  ];
}

function unsettledShadow(store: Pick<Store, "get" | "list">, { name, model }: NodeHost): string[] {
  const shadow = store.get(SHADOWS, NAMESPACE, `brs-${name}`);
  if (!shadow) return [`${name} has no shadow`];
  const status = (dig(shadow, "status") ?? {}) as Fields;
  const states = [dig(shadow, "spec", "state"), status["current_state"]];
  const { version } = model.facts();
  return [
    ...(states.every((state) => state === "Idle") ? [] : [`the shadow of ${name} is in ${states.join("/")}`]),
    ...(status["current_version"] === version ? [] : [`the shadow of ${name} does not say that it runs ${version}`]),
    ...["drain", "rebooting"].filter((key) => status[key]).map((key) => `the shadow of ${name} keeps ${key}`),
  ];
}
