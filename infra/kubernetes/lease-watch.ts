/**
 * The watch of one Lease, for the process that waits for it and for its holder. What it tells may be late, and a watch may
 * be cut: a process that waits reads the Lease again before it acts, also without a hint.
 */
import type { LeaseOptions, LeaseTools } from "./lease-succession.ts";
import { type Lease, leases } from "./resources.ts";

/** Milliseconds until a watch that has ended, or has failed, is opened again. */
const REOPEN_MS = 1000;
const REOPEN_FAILED_MS = 5000;

export interface LeaseWatch {
  /** False until the watch tells of its first object, and after it has ended. */
  readonly isOpen: () => boolean;
  /** Receives the Lease of each event from now on, in place of the function before. */
  readonly listen: (onLease: (lease: Lease) => void) => void;
}

/** Watches until `signal` fires. Without a version, a watch first tells of the Lease as it is: a cut loses nothing. */
export function watchLease({ cluster, clock }: LeaseTools, options: LeaseOptions, signal: AbortSignal): LeaseWatch {
  const { namespace, name } = options;
  let isOpen = false;
  let tell = (_lease: Lease): void => {};

  async function follow(): Promise<void> {
    while (!signal.aborted) {
      const query = { namespace, fieldSelector: `metadata.name=${name}`, resourceVersion: "" };
      const onObject = (_type: string, lease: Lease): void => {
        isOpen = true;
        tell(lease);
      };
      const hasFailed = await cluster.watch(leases, query, { onHint: () => {}, onObject, signal }).then(
        () => false,
        () => true,
      );
      isOpen = false;
      await clock.sleep(hasFailed ? REOPEN_FAILED_MS : REOPEN_MS, signal);
    }
  }

  void follow();
  return { isOpen: () => isOpen, listen: (onLease) => void (tell = onLease) };
}
