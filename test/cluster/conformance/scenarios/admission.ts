/** What admission webhooks are asked, and what becomes of their answers. */
import { dig, textOf } from "../../../emulator/objects.ts";
import { at, configMap, get, patch, pod, post, put, statefulSet, STRATEGIC } from "../requests.ts";
import type { Scenario, Stage } from "../stage.ts";
import { startHook, type Hook, type Judge } from "../webhook.ts";

const labelled = (label: string): object => ({ objectSelector: { matchLabels: { case: label } } });

/** What a webhook says to an object, by the label `case` of it. */
const BY_CASE: Readonly<Record<string, ReturnType<Judge>>> = {
  denied: { allowed: false, status: { code: 429, reason: "TooManyRequests", message: "not now", details: { retryAfterSeconds: 7 } } },
  "denied-below-400": { allowed: false, status: { code: 200, message: "no" } },
  "denied-bare": { allowed: false },
  "denied-by-reason": { allowed: false, status: { reason: "because" } },
  warned: { allowed: true, warnings: ['careful "you"', "and you"] },
  broken: "nonsense",
  "broken-passed-over": "nonsense",
  slow: "silence",
  "another-question": { uid: "x", allowed: true },
  patched: jsonPatch([{ op: "add", path: "/data", value: { added: "yes" } }]),
  "patched-badly": jsonPatch([{ op: "remove", path: "/data/none" }]),
};

function jsonPatch(operations: readonly object[]): object {
  return { allowed: true, patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(operations)).toString("base64") };
}

const byCase: Judge = (request) => BY_CASE[textOf(dig(request, "object", "metadata", "labels", "case")) ?? ""] ?? { allowed: true };

export const admission: readonly Scenario[] = [
  scenario("what a webhook says to an object is done, and told", byCase, async (stage, hook) => {
    const others = Object.keys(BY_CASE).filter((label) => !["broken-passed-over", "slow", "patched", "patched-badly"].includes(label));
    const ofOthers = { objectSelector: { matchExpressions: [{ key: "case", operator: "In", values: others }] } };
    await hook.register("Validating", [
      hook.webhook("a.example.com", ["configmaps"], ofOthers),
      hook.webhook("lenient.example.com", ["configmaps"], { ...labelled("broken-passed-over"), failurePolicy: "Ignore" }),
      hook.webhook("slow.example.com", ["configmaps"], { ...labelled("slow"), timeoutSeconds: 1 }),
      hook.webhook("elsewhere.example.com", ["configmaps"], { namespaceSelector: { matchLabels: { no: "such" } } }),
    ]);
    await hook.register("Mutating", [
      hook.webhook("good.example.com", ["configmaps"], labelled("patched")),
      hook.webhook("bad.example.com", ["configmaps"], labelled("patched-badly")),
    ]);
    const all = at(stage.namespace, "configmaps");
    for (const label of Object.keys(BY_CASE)) {
      const request = post(all, configMap(label, { k: "1" }, { labels: { case: label } }));
      const { headers } = await (label === "patched-badly" ? stage.refused(label, request) : stage.call(label, request, "data"));
      stage.note(`${label}: headers`, { warning: headers["warning"], "retry-after": headers["retry-after"] });
      stage.note(
        `${label}: asked`,
        hook.asked().map((request) => dig(request, "url")),
      );
    }
  }),
  scenario("webhooks are asked of each write as it is", byCase, async (stage, hook) => {
    const sets = at(stage.namespace, "statefulsets");
    const asked = (): void => stage.note("asked", hook.asked().map(withoutUser));
    const step = async (name: string, request: Parameters<Stage["call"]>[1]): Promise<void> => {
      await stage.call(name, request);
      asked();
    };
    await hook.register("Validating", [
      hook.webhook("a.example.com", ["statefulsets", "statefulsets/scale", "pods/eviction"], { timeoutSeconds: 7 }),
    ]);
    await step(
      "create",
      post(`${sets}?fieldManager=me`, statefulSet("z", { replicas: 0, spec: { updateStrategy: { type: "OnDelete" } } })),
    );
    await settle(stage, `${sets}/z`);
    hook.asked();
    await step(
      "patch",
      patch(`${sets}/z`, { spec: { template: { spec: { containers: [{ name: "main", image: "app:2" }] } } } }, STRATEGIC),
    );
    await settle(stage, `${sets}/z`);
    await step("patch of nothing new", patch(`${sets}/z`, { metadata: { name: "z" } }));
    const { body } = await stage.quietly(get(`${sets}/z/scale`));
    await step("replace of the scale in a dry run", put(`${sets}/z/scale?dryRun=All`, { ...(body as object), spec: { replicas: 2 } }));
    await step("patch of the scale", patch(`${sets}/z/scale?fieldManager=kubectl-scale`, { spec: { replicas: 0 } }));
    await step("status is no one's business here", patch(`${sets}/z/status`, { status: { conditions: [{ type: "a", status: "True" }] } }));
    await stage.quietly(post(at(stage.namespace, "pods"), pod("p", {}, { nodeName: "node-1" })));
    const eviction = (more: object = {}): object => ({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "p" }, ...more });
    const evict = (name: string, query = ""): string => at(stage.namespace, "pods", name, `eviction${query}`);
    await step("eviction in a dry run", post(evict("p", "?dryRun=All"), eviction()));
    await step("eviction in a dry run of its own", post(evict("p"), eviction({ deleteOptions: { dryRun: ["All"] } })));
    await stage.call("neither evicts", get(at(stage.namespace, "pods", "p")), "metadata.deletionTimestamp");
    await step("eviction of what is not there", post(evict("none"), { ...eviction(), metadata: { name: "none" } }));
    await step("eviction under another name", post(evict("p"), { ...eviction(), metadata: { name: "q" } }));
    await step("eviction", post(evict("p"), eviction({ deleteOptions: { gracePeriodSeconds: 5 } })));
    await step("delete in a dry run", { method: "DELETE", path: `${sets}/z?dryRun=All` });
    await step("delete", { method: "DELETE", path: `${sets}/z`, body: { propagationPolicy: "Background" } });
  }),
  {
    name: "a change that meets another one goes through admission again, unless it names its version",
    run: async (stage) => {
      const one = at(stage.namespace, "configmaps", "a");
      let meddles = false;
      const judge: Judge = async (request) => {
        if (meddles && dig(request, "object", "data", "mine") !== undefined) {
          meddles = false;
          await stage.quietly(patch(one, { data: { theirs: String(dig(request, "object", "data", "mine")) } }));
        }
        return { allowed: true };
      };
      await playWith(stage, judge, async (hook) => {
        const { body } = await stage.quietly(post(at(stage.namespace, "configmaps"), configMap("a", { theirs: "0" })));
        await hook.register("Validating", [hook.webhook("a.example.com", ["configmaps"])]);
        meddles = true;
        await stage.call("patch", patch(one, { data: { mine: "1" } }), "data");
        stage.note(
          "asked",
          hook.asked().map((request) => [dig(request, "oldObject", "data"), dig(request, "object", "data")]),
        );
        meddles = true;
        const resourceVersion = dig((await stage.quietly(get(one))).body, "metadata", "resourceVersion");
        await stage.call("patch of a version", patch(one, { metadata: { resourceVersion }, data: { mine: "2" } }), "data");
        meddles = true;
        await stage.call("replace without a version", put(one, configMap("a", { mine: "3" })), "data");
        stage.note("created as", dig(body, "data"));
      });
    },
  },
];

function scenario(name: string, judge: Judge, run: (stage: Stage, hook: Hook) => Promise<void>): Scenario {
  return { name, run: (stage) => playWith(stage, judge, (hook) => run(stage, hook)) };
}

async function playWith(stage: Stage, judge: Judge, run: (hook: Hook) => Promise<void>): Promise<void> {
  const hook = await startHook(stage, judge);
  try {
    await run(hook);
  } finally {
    await hook.close();
  }
}

/** Who asks differs between clusters, and the uid is new each time. */
function withoutUser(request: unknown): object {
  const { userInfo: _, uid: __, ...rest } = request as { userInfo: unknown; uid: unknown };
  return rest;
}

/** Resolves when the controller has seen the set as it is now. */
async function settle(stage: Stage, path: string): Promise<void> {
  const { body } = await stage.quietly(get(path));
  const watching = await stage.watch(`${at(stage.namespace, "statefulsets")}?watch=1&resourceVersion=0`);
  const generation = dig(body, "metadata", "generation");
  await watching.until((events) => dig(events.at(-1)?.object, "status", "observedGeneration") === generation);
}
