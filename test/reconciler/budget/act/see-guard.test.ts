/** The probe of the eviction webhook evicts nothing, whoever lets it pass. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { seeGuard } from "../../../../reconciler/budget/act/see-guard.ts";
import { setBudgetStage } from "../../budget-stage.ts";
import type { Stage } from "../../stage.ts";

describe("a probe that no webhook answers", { timeout: 60_000 }, () => {
  let stage: Stage;
  before(async () => void (stage = await setBudgetStage()));
  after(() => stage.close());

  /** Asks, and keeps the body that was sent; `change` is what somebody in between makes of it. */
  async function ask(change: (body: object) => object = (body) => body) {
    const { cluster: direct } = stage.connect();
    const sent: unknown[] = [];
    const create: Cluster["create"] = async (resource, target, call) => {
      sent.push(target.body);
      return await direct.create(resource, { ...target, body: change(target.body as object) as never }, call);
    };
    const source = { cluster: { ...direct, create }, call: { deadlineMs: 5000 } };
    const { reason } = await seeGuard("default", { hooks: undefined, unread: [] }, source);
    return { reason, sent };
  }
  const uids = (): unknown[] => stage.emulator.store.list("pods").map(({ metadata }) => metadata.uid);

  it("was allowed, and pods stay: it names none that there is", async () => {
    const before = uids();
    const { reason, sent } = await ask();
    assert.equal(reason, "NoWebhook");
    const [{ metadata, deleteOptions } = assert.fail()] = sent as {
      metadata: { name: string };
      deleteOptions: object;
    }[];
    assert.equal(metadata.name, "zonewise-probe");
    assert.deepEqual(deleteOptions, {
      preconditions: { uid: "00000000-0000-0000-0000-000000000000" },
      dryRun: ["All"],
    });
    await stage.time.advance(1000);
    assert.deepEqual(uids(), before);
  });

  it("reaches no pod even if it is no dry run any more", async () => {
    const before = uids();
    const { reason } = await ask((body) => ({
      ...body,
      deleteOptions: { ...(body as { deleteOptions: object }).deleteOptions, dryRun: [] },
    }));
    assert.equal(reason, "NoWebhook");
    assert.deepEqual(uids(), before);
  });
});
