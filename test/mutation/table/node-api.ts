/** Node updates: who may speak for a node, when a node is drained and given back, and when its host reboots. */
import type { Mutation } from "../mutation.ts";

const IDENTIFY = {
  file: "functions/nodes/identify-caller.ts",
  tests: ["test/functions/nodes/identify-caller.test.ts"],
};
const REVIEW = { ...IDENTIFY, file: "functions/nodes/identify-caller.ts" };
const DRAIN = { file: "functions/nodes/drain-node.ts", tests: ["test/functions/nodes/drain-node.test.ts"] };
const STATUS = { file: "functions/nodes/shadow-status.ts", tests: ["test/functions/nodes/shadow-status.test.ts"] };
const AGENT = { file: "reconciler/nodes/decide-agent.ts", tests: ["test/reconciler/nodes/decide-agent.test.ts"] };

export const NODE_API_MUTATIONS: readonly Mutation[] = [
  {
    breaks: "a call that is sent away with Retry-After: 0 is not repeated at once",
    file: "infra/http.ts",
    tests: ["test/infra/http.test.ts", "test/infra/cluster-errors.test.ts"],
    find: "Math.max(Number(header) * 1000, MIN_RETRY_MS)",
    replacement: "Number(header) * 1000",
  },
  {
    breaks: "a call that is sent away for weeks is repeated after an hour",
    file: "infra/http.ts",
    tests: ["test/infra/http.test.ts"],
    find: "const MAX_RETRY_MS = 3_600_000;",
    replacement: "const MAX_RETRY_MS = Infinity;",
  },
  {
    breaks: "a sleep that is longer than a timer of Node.js does not end at once",
    file: "infra/clock.ts",
    tests: ["test/infra/http.test.ts"],
    find: "Math.min(Math.max(0, ms), MAX_TIMER_MS)",
    replacement: "Math.max(0, ms)",
  },
  {
    breaks: "an agent that is refused reads the UID of its node again",
    file: "reconciler/nodes/agent/call-node-api.ts",
    tests: ["test/reconciler/nodes/agent/call-node-api.test.ts"],
    find: "if (answer.status === FORBIDDEN && readUid)",
    replacement: "if (answer.status === -1 && readUid)",
  },
  {
    breaks: "a node whose policy is frozen is not drained",
    ...DRAIN,
    find: "if (!frozen) return undefined;",
    replacement: 'if (!frozen || policy.name !== "") return undefined;',
  },
  {
    breaks: "a node that no policy has in a slot is not drained",
    ...DRAIN,
    find: "if (!policy) return",
    replacement: "if (!policy) return undefined; if (policy.name === '') return",
  },
  {
    breaks: "the announcement of a reboot asks whether the policy is frozen",
    ...STATUS,
    find: 'return held === undefined ? undefined : refuseNode("Unavailable", held);',
    replacement: 'return held === undefined || held !== "" ? undefined : refuseNode("Unavailable", held);',
  },
  {
    breaks: "a token is for our audience, as the review says",
    ...REVIEW,
    find: "|| !reviewed.data.audiences.includes(AUDIENCE)",
    replacement: "",
    tests: ["test/functions/nodes/judge-review.test.ts"],
  },
  {
    breaks: "only the agents' ServiceAccount speaks for nodes",
    ...REVIEW,
    find: `if (username !== \`system:serviceaccount:\${namespace}:\${account}\`)`,
    replacement: "if (username === '')",
  },
  {
    breaks: "an agent speaks for the node that it runs on alone",
    ...IDENTIFY,
    find: "if (placeOf(live) !== claim.nodeName) return",
    replacement: "if (placeOf(live) === undefined) return",
  },
  {
    breaks: "a node is drained only if its reboot is wanted",
    ...DRAIN,
    find: "if (!isDrainWanted(shadow)) return",
    replacement: "if (shadow.metadata.name === '') return",
  },
  {
    breaks: "the shadow of an earlier node is not obeyed",
    ...DRAIN,
    file: "functions/nodes/shadow-store.ts",
    find: "if (owner !== uid) throw",
    replacement: 'if (owner === "") throw',
  },
  {
    breaks: "an agent's token is sent over TLS alone",
    file: "reconciler/nodes/agent/call-node-api.ts",
    tests: ["test/reconciler/nodes/agent/call-node-api.test.ts"],
    find: 'if (url.protocol !== "https:")',
    replacement: 'if (url.protocol === "")',
  },
  {
    breaks: "a node is drained only once no pod is left",
    ...DRAIN,
    find: `if (drain.remaining > 0 && drain["forced"] !== true)`,
    replacement: `if (drain.remaining < 0 && drain["forced"] !== true)`,
  },
  {
    breaks: "a node is drained only if it was cordoned before the list",
    ...DRAIN,
    find: "if (isNew) return notYet(drain, AFTER_CORDON_S);",
    replacement: "",
  },
  {
    breaks: "an eviction carries the UID that was listed",
    ...DRAIN,
    find: "deleteOptions: { preconditions: { uid } },",
    replacement: `deleteOptions: { preconditions: { uid: "" } },`,
  },
  {
    breaks: "a reboot is announced only for a drained node",
    ...STATUS,
    find: "return drain && (drain.remaining === 0 ||",
    replacement: "return drain && (drain.remaining >= 0 ||",
  },
  {
    breaks: "a reboot is announced only while it is wanted",
    ...STATUS,
    find: `if (wanted !== "RebootedIntoUpdate") return`,
    replacement: `if (wanted === undefined) return`,
  },
  {
    breaks: "agents do not write the progress of their drain",
    ...STATUS,
    find: "const { drain: _, boot_reported_at: __, ...status } = sent;",
    replacement: "const { boot_reported_at: __, ...status } = sent;",
  },
  {
    breaks: "the drain of an attempt that is over is forgotten",
    ...STATUS,
    find: "{ ...status, ...reported, ...over }",
    replacement: "{ ...status, ...reported }",
  },
  {
    breaks: "a drain waits for every pod that runs",
    file: "reconciler/nodes/node-pod.ts",
    tests: ["test/reconciler/nodes/node-pod.test.ts"],
    find: "hasEnded(pod) ? !isDeleted(pod) :",
    replacement: "isDeleted(pod) ? false :",
  },
  {
    breaks: "nothing uncordons a node that may reboot",
    file: "functions/nodes/node-service.ts",
    tests: ["test/functions/nodes/node-service.test.ts"],
    find: "if (status?.rebooting) return",
    replacement: `if (status?.rebooting && what === "exclusion") return`,
  },
  {
    breaks: "a person's cordon stays",
    file: "reconciler/nodes/node-marks.ts",
    tests: ["test/reconciler/nodes/node-marks.test.ts"],
    find: `cordon: what === "all" && isMarked(node, CORDONED_BY)`,
    replacement: `cordon: what === "all"`,
  },
  {
    breaks: "a host that came back in the old version is not drained again",
    ...AGENT,
    find: "reboots, rolledBack, returned,",
    replacement: "reboots, returned,",
  },
];
