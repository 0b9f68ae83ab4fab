/** The optional webhook on deletions of pods: who is asked, what is refused, and what evictions see of it (§5.12). */
import assert from "node:assert/strict";
import { keepPod } from "../stage/evict.ts";
import { createBudget, serveWebhooks, type Webhooks } from "../stage/eviction-stage.ts";
import type { KubectlResult } from "../stage/kubectl.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const FOLDER = "infra/manifests/pod-deletion-webhook";
/** Controllers of a test cluster may have the administrator's account, which the tests themselves use. */
const PASSES_ADMIN = (text: string): string =>
  text.replace("'system:kube-scheduler'", "'system:kube-scheduler', 'admin'");
const OPTIONAL = {
  hooks: ["pod-deletion"],
  rendering: { folder: FOLDER, edit: { [`${FOLDER}/pod-deletion.yaml`]: PASSES_ADMIN } },
};
const BUDGETS = "/apis/rollout-operator.grafana.com/v1";
const ZONES = ["zone-a", "zone-b"].map((name) => ({ group: "cache", name }));
const REFUSED = /denied the request: zone-\w-\d is not deleted: .*zonewise\/delete-by-hand=true/;
const account = (name: string, of = "kube-system"): string => `system:serviceaccount:${of}:${name}`;

interface Guarded extends Stage {
  readonly webhooks: Webhooks;
  /** `kubectl delete pod` as this user. */
  readonly remove: (user: string, pod: string, ...more: readonly string[]) => Promise<KubectlResult>;
  /** The reviews that the functions have logged of deletions. */
  readonly asked: () => number;
  readonly reserved: () => Promise<readonly string[]>;
}

const DRY_RUN = "--dry-run=server";

/** Two zones of three pods under a budget whose webhooks, of evictions and of deletions, are known to be asked. */
function guarded(name: string, run: (stage: Guarded) => Promise<void>): void {
  scenario(name, async (stage) => {
    const { namespace, call } = stage;
    await stage.create(ZONES);
    const webhooks = await serveWebhooks(stage, 2, { optional: OPTIONAL, env: { LOG_LEVEL: "debug" } });
    const budget = `${BUDGETS}/namespaces/${namespace}/zoneawarepoddisruptionbudgets/cache`;
    const remove: Guarded["remove"] = async (user, pod, ...more) => {
      const groups = user.startsWith("system:node:") ? ["system:nodes"] : [];
      const as = [`--as=${user}`, ...["system:masters", ...groups].map((group) => `--as-group=${group}`)];
      return await stage.kubectl(["delete", "pod", pod, "--wait=false", ...more, ...as]);
    };
    await createBudget(stage, "cache", { maxUnavailable: 0 });
    await until("deletions are asked about", async () =>
      REFUSED.test((await remove("jane", "zone-a-0", DRY_RUN)).text),
    );
    await call("PATCH", budget, { spec: { maxUnavailable: 1 } });
    await until("one may go", async () => (await remove("jane", "zone-a-0", DRY_RUN)).code === 0);
    await run({
      ...stage,
      webhooks,
      remove,
      asked: () =>
        webhooks.processes.flatMap((one) => one.output().match(/"request.operation":"DELETE"/g) ?? []).length,
      reserved: async () => {
        const { status } = await call<{ status?: { disruptedPods?: object } }>("GET", budget);
        return Object.keys(status?.disruptedPods ?? {});
      },
    });
  });
}

guarded(
  "two users who delete in two zones at once: one of the pods stays, and evictions see the other",
  async (stage) => {
    const { remove, namespace, asked, reserved } = stage;
    assert.deepEqual(await reserved(), [], "a dry run reserves nothing");
    await keepPod(stage, "zone-a-0", async () =>
      keepPod(stage, "zone-b-0", async () => {
        const answers = await Promise.all([remove("jane", "zone-a-0"), remove("joe", "zone-b-0")]);
        assert.deepEqual(
          answers.map(({ code }) => code).toSorted(),
          [0, 1],
          answers.map(({ text }) => text).join("\n"),
        );
        const [gone, kept] = answers[0]?.code === 0 ? (["zone-a", "zone-b"] as const) : (["zone-b", "zone-a"] as const);
        const refusal = answers.find(({ code }) => code !== 0)?.text ?? "";
        assert.match(refusal, REFUSED);
        assert.match(refusal, /1 pod not ready in zone-/);
        assert.deepEqual(await reserved(), [`${gone}-0`]);

        const before = asked();
        assert.ok(before > 1, "what was asked is known by the logs");
        const evict = async (pod: string): Promise<string> => {
          const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod, namespace } };
          const path = `/api/v1/namespaces/${namespace}/pods/${pod}/eviction`;
          const as = ["--as=jane", "--as-group=system:masters"];
          return (await stage.kubectl(["create", "--raw", path, "-f", "-", ...as], eviction)).text;
        };
        assert.match(await evict(`${kept}-1`), /denied the request: 1 pod not ready in zone-/);
        // Within its zone the budget is 1: the pod that goes is the only one that may be evicted again.
        assert.match(await evict(`${gone}-0`), /"status":"Success"|Success/);
        assert.equal(asked(), before, "an eviction is not asked about as a deletion");

        for (const [who, user, pod] of [
          ["a person", "jane", `${kept}-1`],
          ["an account of the namespace", account("default", namespace), `${kept}-1`],
          ["the same zone, whose budget is spent", "jane", `${gone}-1`],
        ] as const)
          assert.match((await remove(user, pod, DRY_RUN)).text, REFUSED, who);
        for (const more of [["--force", "--grace-period=0"], ["--grace-period=1"]])
          assert.match((await remove("jane", `${kept}-1`, DRY_RUN, ...more)).text, REFUSED, more.join(" "));
        assert.equal((await remove("jane", `${gone}-0`, DRY_RUN)).code, 0, "a terminating pod");
        await stage.annotatePod(`${kept}-1`, { "zonewise/delete-by-hand": "true" });
        assert.equal((await remove("jane", `${kept}-1`, DRY_RUN)).code, 0, "the way out");
        await until("an Event tells of it", async () =>
          (await stage.events("DeletionDenied")).some(({ message = "" }) => /may not delete it: /.test(message)),
        );
      }),
    );
  },
);

guarded("while no function answers, a person is refused, and what has to delete pods is not", async (stage) => {
  const { remove, webhooks, namespace } = stage;
  await Promise.all(webhooks.processes.map((one) => one.kill()));
  await until("nobody answers", async () =>
    /failed calling webhook/.test((await remove("jane", "zone-a-0", DRY_RUN)).text),
  );
  for (const user of [
    account("statefulset-controller"),
    "system:node:node-1",
    account("zonewise-reconciler", namespace),
  ])
    assert.equal((await remove(user, "zone-a-0", DRY_RUN)).code, 0, user);
  await stage.annotatePod("zone-a-0", { "zonewise/delete-by-hand": "true" });
  assert.equal((await remove("jane", "zone-a-0", DRY_RUN)).code, 0, "the way out");
});
