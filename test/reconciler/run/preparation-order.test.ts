/** Requests that cancel a pod's preparation must end before the same pod is prepared: the last request counts. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { PodHttp } from "../../../infra/pod-http.ts";
import { createPodNotifier } from "../../../reconciler/scaling/act/pod-notifier.ts";
import { zone } from "../builders.ts";

const pods = (count: number) =>
  Object.assign(
    Array.from({ length: count }, (_, i) => ({ pod: `p-${i}`, url: `http://p-${i}/` })),
    { count },
  );

it("a zone that shrinks waits for the requests in flight, even for cancelled ones that end late", async () => {
  const arrived = Promise.withResolvers<void>();
  const http: PodHttp = {
    send: async () => {
      await arrived.promise;
      return { status: 200, body: "" };
    },
  };
  const notifier = createPodNotifier({
    http,
    clock: { monotonic: () => 0 },
    onNote: () => {},
    signal: new AbortController().signal,
  });
  await notifier.cancelPreparation(zone(), pods(3));
  let over = false;
  const shrinking = notifier.cancelPreparation(zone(), pods(2)).then(() => (over = true));
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  assert.equal(over, false, "a DELETE is still on its way");
  arrived.resolve();
  await shrinking;
});
