/**
 * The steps of groups under one Lease, one worker a key. Namespaces take turns, and the keys of each are first in,
 * first out. At most so many keys are worked on at once, and so many of one namespace: no tenant delays the others,
 * and a slow key delays only itself.
 *
 *   a tick: pause --it reads the facts for all keys--> resume with a work for each
 *
 *     new, or waiting    the key waits for its turn; one that waited keeps its place, and gets the work with the new facts
 *     worked on          the new facts may be older than its writes: it is left out, and owed a tick once its work ends
 *     not in the tick    the key is gone
 */

/** Never rejects. */
export type Work = () => Promise<void>;

interface QueueOptions {
  readonly atOnce: number;
  readonly ofNamespace: number;
  readonly monotonic: () => number;
  /** Once it fires, no work begins. */
  readonly signal: AbortSignal;
  /** Called when a key's work has ended that a tick has left out meanwhile. */
  readonly onOwed: () => void;
}

interface Waiting {
  /** By the monotonic clock. */
  readonly since: number;
  readonly ended: PromiseWithResolvers<void>;
  work: Work;
}

interface Working {
  readonly ended: Promise<void>;
  isOwed: boolean;
}

/** The keys of one namespace. */
interface Lane {
  readonly waiting: Map<string, Waiting>;
  readonly working: Map<string, Working>;
}

/** A new queue is paused. */
export class Queue {
  readonly #options: QueueOptions;
  readonly #lanes = new Map<string, Lane>();
  /** The lanes that may begin a key; the lane whose turn is next comes first. */
  readonly #ready = new Set<Lane>();
  /** The keys that were worked on at the last pause. */
  #busy: ReadonlySet<string> = new Set();
  #isPaused = true;
  #size = 0;

  constructor(options: QueueOptions) {
    this.#options = options;
    options.signal.addEventListener("abort", () => this.#release(), { once: true });
  }

  /** Begins no work until `resume`. Returns the keys that are worked on: `resume` will leave them out. */
  pause(): ReadonlySet<string> {
    this.#isPaused = true;
    this.#busy = new Set(this.#keys(({ working }) => working));
    return this.#busy;
  }

  /**
   * Goes on with these works, by keys `<namespace>/<name>`. Resolves once the work of each key that was not left out
   * has ended, or will never begin.
   */
  async resume(works: ReadonlyMap<string, Work>): Promise<void> {
    for (const key of this.#keys(({ waiting }) => waiting)) if (!works.has(key)) this.#drop(key);
    const ended = [...works].flatMap(([key, work]) => (this.#isOwed(key) ? [] : [this.#add(key, work)]));
    this.#isPaused = false;
    if (this.#options.signal.aborted) this.#release();
    this.#begin();
    await Promise.all(ended);
  }

  /** Since when a key waits for its turn, by the monotonic clock; undefined if it does not. */
  waitsSince(key: string): number | undefined {
    return this.#lanes.get(namespaceOf(key))?.waiting.get(key)?.since;
  }

  /** The keys that are worked on in place of one of this namespace: its own if no other of them may begin, otherwise all. */
  inPlaceOf(namespace: string): string[] {
    const own = [...(this.#lanes.get(namespace)?.working.keys() ?? [])];
    return own.length >= this.#options.ofNamespace ? own : this.#keys(({ working }) => working);
  }

  get size(): number {
    return this.#size;
  }

  /** Resolves once no key is worked on. Pause the queue before, or let its signal fire. */
  async idle(): Promise<void> {
    await Promise.all(
      [...this.#lanes.values()].flatMap(({ working }) => [...working.values()].map((one) => one.ended)),
    );
  }

  #keys(of: (lane: Lane) => ReadonlyMap<string, unknown>): string[] {
    return [...this.#lanes.values()].flatMap((lane) => [...of(lane).keys()]);
  }

  /** True for a key that is left out. */
  #isOwed(key: string): boolean {
    const working = this.#lanes.get(namespaceOf(key))?.working.get(key);
    if (working) working.isOwed = true;
    return this.#busy.has(key);
  }

  #add(key: string, work: Work): Promise<void> {
    const namespace = namespaceOf(key);
    const lane = this.#lanes.get(namespace) ?? { waiting: new Map(), working: new Map() };
    const since = this.#options.monotonic();
    const entry = lane.waiting.get(key) ?? { since, ended: Promise.withResolvers<void>(), work };
    entry.work = work;
    lane.waiting.set(key, entry);
    this.#lanes.set(namespace, lane);
    this.#makeReady(lane);
    return entry.ended.promise;
  }

  #drop(key: string): void {
    const lane = this.#lanes.get(namespaceOf(key));
    lane?.waiting.get(key)?.ended.resolve();
    lane?.waiting.delete(key);
  }

  #makeReady(lane: Lane): void {
    if (lane.waiting.size > 0 && lane.working.size < this.#options.ofNamespace) this.#ready.add(lane);
  }

  #begin(): void {
    while (!this.#isPaused && !this.#options.signal.aborted && this.#size < this.#options.atOnce) {
      const [lane] = this.#ready;
      if (!lane) return;
      this.#ready.delete(lane);
      const [next] = lane.waiting;
      if (next) void this.#work(lane, next);
      this.#makeReady(lane);
    }
  }

  async #work(lane: Lane, [key, { work, ended }]: readonly [string, Waiting]): Promise<void> {
    const working: Working = { ended: ended.promise, isOwed: false };
    lane.waiting.delete(key);
    lane.working.set(key, working);
    this.#size++;
    await work();
    lane.working.delete(key);
    this.#size--;
    // If it ends while the facts are read, the tick will leave it out.
    if (working.isOwed || (this.#isPaused && this.#busy.has(key))) this.#options.onOwed();
    ended.resolve();
    this.#makeReady(lane);
    this.#begin();
  }

  /** What waits will never begin. */
  #release(): void {
    for (const { waiting } of this.#lanes.values()) for (const { ended } of waiting.values()) ended.resolve();
  }
}

const namespaceOf = (key: string): string => key.slice(0, key.indexOf("/"));
