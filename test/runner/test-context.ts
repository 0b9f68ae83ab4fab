/**
 * Which test is running, without a hook on every promise: imported before `node:test`.
 *
 * node:test learns by an async hook in which test a promise was made, and when it is collected. It needs that only to
 * know who registers a test and who has thrown, and pays for it with a quarter of the CPU time of tests as these. The
 * context of asynchronous calls, which V8 passes on by itself, knows as well. Where node:test no longer makes such a
 * hook, all is as if this file were not there. Source: lib/internal/test_runner/harness.js.
 */
import hooks, { AsyncLocalStorage, AsyncResource, type HookCallbacks } from "node:async_hooks";

const { createHook, executionAsyncId } = hooks;
/** The asynchronous id of the test. */
const current = new AsyncLocalStorage<number>();

/** The first hook that is told of beginnings and ends is that of node:test. */
hooks.createHook = (callbacks: HookCallbacks) => {
  if (!callbacks.init || !callbacks.destroy) return createHook(callbacks);
  hooks.createHook = createHook;
  followTests(callbacks.init);
  return createHook({});
};
hooks.executionAsyncId = () => current.getStore() ?? executionAsyncId();

type Run = (this: AsyncResource, run: (...args: unknown[]) => unknown, self: unknown, ...args: unknown[]) => unknown;

/** Tells `init` of each test as it is run: a test is an AsyncResource with subtests. */
function followTests(init: NonNullable<HookCallbacks["init"]>): void {
  const { prototype } = AsyncResource;
  const runInAsyncScope = Reflect.get(prototype, "runInAsyncScope") as Run;
  const follow: Run = function (run, self, ...args) {
    if (!("createSubtest" in this)) return runInAsyncScope.call(this, run, self, ...args);
    const id = this.asyncId();
    init(id, "Test", 0, this);
    // Within it: it begins with the context in which the test was registered.
    const inContext: typeof run = (...given) => current.run(id, () => Reflect.apply(run, self, given));
    return runInAsyncScope.call(this, inContext, self, ...args);
  };
  Reflect.set(prototype, "runInAsyncScope", follow);
}
