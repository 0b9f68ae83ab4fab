/**
 * The watch of one Lease, for the process that waits for it and for its holder. What it tells may be late, and a watch may
 * be cut: a process that waits reads the Lease again before it acts, also without a hint.
 */
import type { LeaseOptions, LeaseTools } from "./lease-succession.ts";
import { type Lease, leases } from "./resources.ts";
import { keepOpen } from "./watch.ts";

export interface LeaseWatch {
  /** False until the watch tells of its first object, and after it has ended. */
  readonly isOpen: () => boolean;
  /** Receives the Lease of each event from now on, in place of the function before. */
  readonly listen: (onLease: (lease: Lease) => void) => void;
  readonly end: () => void;
}

/** Watches until its end. Without a version, a watch first tells of the Lease as it is: a cut loses nothing. */
export function watchLease({ cluster, clock }: LeaseTools, { namespace, name }: LeaseOptions): LeaseWatch {
  const over = new AbortController();
  const { signal } = over;
  const query = { namespace, fieldSelector: `metadata.name=${name}`, resourceVersion: "" };
  let isOpen = false;
  let tell = (_lease: Lease): void => {};

  const onObject = (_type: string, lease: Lease): void => {
    isOpen = true;
    tell(lease);
  };

  void keepOpen(() => cluster.watch(leases, query, { onHint: () => {}, onObject, signal }), {
    clock,
    signal,
    onCut: () => void (isOpen = false),
  });
  return {
    isOpen: () => isOpen,
    listen: (onLease) => void (tell = onLease),
    // With a reason, as Node.js would otherwise create an error.
    end: () => over.abort("over"),
  };
}
