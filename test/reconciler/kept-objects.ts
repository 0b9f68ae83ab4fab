/** Objects of one namespace in memory, as the port of a process sees them: nothing happens to them by itself. */
import { RolloutError } from "../../infra/errors.ts";
import type { Cluster, Patch, Ref } from "../../infra/kubernetes/cluster.ts";
import type { Resource } from "../../infra/kubernetes/resources.ts";
import { mergePatch } from "../emulator/patch.ts";
import { labelSelector } from "../emulator/selectors.ts";

export interface Kept {
  readonly metadata?: {
    readonly name?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly resourceVersion?: string;
  };
}

/** By the plural of their kind. */
export type Objects = Readonly<Record<string, readonly Kept[]>>;

interface KeptObjects {
  readonly cluster: Cluster;
  /** Calls to the API server, such as `list pods`. */
  readonly calls: string[];
  readonly get: (plural: string, name: string) => Kept | undefined;
  /** Puts others in the place of those of the same kinds, as if time had passed. */
  readonly change: (objects: Objects) => void;
}

interface Options {
  /** What serves any kind that is asked for. */
  readonly discovered?: readonly Resource[];
  /** The calls that fail, such as `list pods`. */
  readonly failing?: readonly string[] | undefined;
}

export function keepObjects(objects: Objects, { discovered = [], failing = [] }: Options = {}): KeptObjects {
  const kept = new Map(Object.entries(objects));
  const calls: string[] = [];
  let version = 1000;
  const begin = (verb: string, { plural }: Resource): void => {
    const call = `${verb} ${plural}`;
    calls.push(call);
    if (failing.includes(call)) throw new RolloutError("ServerError", "a secret of the API server");
  };
  const get = (plural: string, name: string): Kept | undefined =>
    kept.get(plural)?.find(({ metadata }) => metadata?.name === name);
  const found = ({ plural }: Resource, { name }: Pick<Ref, "name">): Kept => {
    const object = get(plural, name);
    if (!object) throw new RolloutError("NotFound", `${plural} ${name} not found`);
    return structuredClone(object);
  };

  function store({ plural }: Resource, body: Kept): Kept {
    const object = { ...body, metadata: { ...body.metadata, resourceVersion: String(++version) } };
    const others = (kept.get(plural) ?? []).filter(({ metadata }) => metadata?.name !== object.metadata.name);
    kept.set(plural, [...others, object]);
    return structuredClone(object);
  }

  /** It throws `Conflict` unless the change was made to the version that is kept. */
  function update(resource: Resource, ref: Ref, body: Kept, dryRun = false): Kept {
    const { resourceVersion } = found(resource, ref).metadata ?? {};
    if ((body.metadata?.resourceVersion ?? resourceVersion) !== resourceVersion)
      throw new RolloutError("Conflict", `${resource.plural} ${ref.name} has changed`);
    return dryRun ? body : store(resource, body);
  }

  const merge = (resource: Resource, patch: Patch): Kept => {
    const before = found(resource, patch);
    const { resourceVersion = before.metadata?.resourceVersion } = (patch.body as Kept).metadata ?? {};
    const body = mergePatch(before, patch.body) as Kept;
    const metadata = { ...body.metadata, ...(resourceVersion !== undefined && { resourceVersion }) };
    return update(resource, patch, { ...body, metadata }, patch.dryRun);
  };

  const cluster = {
    async *list(resource, query) {
      begin("list", resource);
      const matches = labelSelector(query.labelSelector ?? "");
      const items = (kept.get(resource.plural) ?? []).filter(({ metadata }) => matches(metadata?.labels ?? {}));
      yield { items: structuredClone(items) as never[], resourceVersion: String(version) };
    },
    async get(resource, ref) {
      begin("get", resource);
      return found(resource, ref) as never;
    },
    async create(resource, { body }) {
      begin("create", resource);
      const { name = "" } = (body as Kept).metadata ?? {};
      if (get(resource.plural, name)) throw new RolloutError("AlreadyExists", `${resource.plural} ${name}`);
      return store(resource, body as Kept) as never;
    },
    async replace(resource, { body, ...ref }) {
      begin("replace", resource);
      return update(resource, ref, body as Kept) as never;
    },
    async patch(resource, patch) {
      begin("patch", resource);
      return merge(resource, patch).metadata?.resourceVersion ?? "";
    },
    async change(resource, patch) {
      begin("change", resource);
      return merge(resource, patch) as never;
    },
    discover: async (group, kind) =>
      discovered.filter((one) => one.group === group && one.plural === `${kind.toLowerCase()}s`),
  } as Partial<Cluster> as Cluster;

  return {
    cluster,
    calls,
    get,
    change: (next) => Object.entries(next).forEach(([plural, all]) => kept.set(plural, all)),
  };
}
