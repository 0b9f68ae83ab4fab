/**
 * Converts shadows between v1 and v2 and loses nothing: fields that the other version lacks travel in an
 * annotation. The annotation counts only while its state is unchanged: a writer of another state intends the change
 * (§17.8). A ConversionReview is answered with all objects in their order, or with none and the reason.
 */
import * as z from "zod";
import { type Fields, fieldsOf, isFields } from "../../infra/json.ts";
import { SHADOW_GROUP } from "./shadow.ts";

/** On an object that was converted: the fields that its version lacks, as JSON. */
const STASH = "zonewise.dev/converted-from";

type Version = "v1" | "v2";

const TO_V2: Fields = { StagedUpdate: "StagedAndPerformedUpdate", PerformedUpdate: "StagedAndPerformedUpdate" };
const TO_V1: Fields = { StagedAndPerformedUpdate: "StagedUpdate", ErrorReset: "MonitoringUpdate" };
const STATES_FOR = { v1: TO_V1, v2: TO_V2 };

const stateFor = (state: unknown, version: Version): unknown =>
  typeof state === "string" ? (STATES_FOR[version][state] ?? state) : state;

/** The fields of a v1 status; v1 has no field for the others. */
const V1_STATUS = ["current_version", "target_version", "current_state"];

interface Stash {
  /** The states before the conversion. */
  readonly spec?: unknown;
  readonly state?: unknown;
  /** Fields of a v2 status that v1 lacks. */
  readonly status?: Fields;
}

/** The version of an API version of ours; undefined if it is none. */
function versionOf(apiVersion: unknown): Version | undefined {
  if (apiVersion === `${SHADOW_GROUP}/v1`) return "v1";
  return apiVersion === `${SHADOW_GROUP}/v2` ? "v2" : undefined;
}

/** The object in that version; the same object if it has that version. Throws if its own version is none of ours. */
export function convertShadow(object: unknown, to: Version): Fields {
  const fields = fieldsOf(object);
  const from = versionOf(fields["apiVersion"]);
  if (!from)
    throw new Error(`apiVersion ${JSON.stringify(fields["apiVersion"])} is not a version of BottlerocketShadow`);
  if (from === to) return fields;
  const { stash, metadata } = takeStash(fieldsOf(fields["metadata"]));
  const spec = fieldsOf(fields["spec"]);
  const status = isFields(fields["status"]) ? fields["status"] : undefined;
  const converted = {
    ...fields,
    apiVersion: `${SHADOW_GROUP}/${to}`,
    spec: {
      state_transition_timestamp: null,
      version: null,
      ...spec,
      state: restoreState(spec["state"], stash.spec, to),
    },
    ...(status && { status: convertStatus(status, stash, to) }),
  };
  return { ...converted, metadata: putStash(metadata, stashOf(spec, status, to)) };
}

/** The state as it was before an earlier conversion, if it still is that state in the other version. */
function restoreState(state: unknown, before: unknown, to: Version): unknown {
  const from = to === "v1" ? "v2" : "v1";
  return before !== undefined && stateFor(before, from) === state ? before : stateFor(state, to);
}

function convertStatus(status: Fields, stash: Stash, to: Version): Fields {
  const current_state = restoreState(status["current_state"], stash.state, to);
  if (to === "v1") return { ...pick(status, V1_STATUS), current_state };
  const holds = stash.state !== undefined && stateFor(stash.state, "v1") === status["current_state"];
  const added = { crash_count: 0, state_transition_failure_timestamp: null };
  return { ...added, ...(holds ? stash.status : {}), ...status, current_state };
}

const pick = (fields: Fields, keys: readonly string[]): Fields =>
  Object.fromEntries(keys.map((key) => [key, fields[key]]));

/** The facts that the target version lacks; undefined if the conversion back restores them anyway. */
function stashOf(spec: Fields, status: Fields | undefined, to: Version): Stash | undefined {
  const states = [spec["state"], status?.["current_state"]];
  const rest = to === "v1" && status ? withoutDefaults(status) : {};
  const hasRest = Object.keys(rest).length > 0;
  if (!hasRest && !states.some((state) => isLost(state, to))) return undefined;
  return { spec: states[0], state: states[1], ...(hasRest && { status: rest }) };
}

const isLost = (state: unknown, to: Version): boolean =>
  stateFor(stateFor(state, to), to === "v1" ? "v2" : "v1") !== state;

function withoutDefaults(status: Fields): Fields {
  const isDefault = (key: string, value: unknown): boolean =>
    (key === "crash_count" && value === 0) || (key === "state_transition_failure_timestamp" && value === null);
  return Object.fromEntries(
    Object.entries(status).filter(([key, value]) => !V1_STATUS.includes(key) && !isDefault(key, value)),
  );
}

function takeStash(metadata: Fields): { readonly stash: Stash; readonly metadata: Fields } {
  const { [STASH]: written, ...annotations } = fieldsOf(metadata["annotations"]);
  if (typeof written !== "string") return { stash: {}, metadata };
  const { annotations: _, ...rest } = metadata;
  return {
    stash: parseStash(written),
    metadata: Object.keys(annotations).length > 0 ? { ...rest, annotations } : rest,
  };
}

function parseStash(text: string): Stash {
  try {
    const { spec, state, status } = fieldsOf(JSON.parse(text));
    return { spec, state, ...(isFields(status) && { status }) };
  } catch {
    return {};
  }
}

function putStash(metadata: Fields, stash: Stash | undefined): Fields {
  return stash
    ? { ...metadata, annotations: { ...fieldsOf(metadata["annotations"]), [STASH]: JSON.stringify(stash) } }
    : metadata;
}

const conversionReview = z.looseObject({
  apiVersion: z.string(),
  kind: z.literal("ConversionReview"),
  request: z.looseObject({ uid: z.string(), desiredAPIVersion: z.string(), objects: z.array(z.unknown()) }),
});

/** The review that is answered; undefined if the body is not a ConversionReview. */
export function answerConversion(body: unknown): object | undefined {
  const review = conversionReview.safeParse(body);
  if (!review.success) return undefined;
  const { apiVersion, kind, request } = review.data;
  return {
    apiVersion,
    kind,
    response: { uid: request.uid, ...convertAll(request.objects, request.desiredAPIVersion) },
  };
}

function convertAll(objects: readonly unknown[], desired: string): object {
  const to = versionOf(desired);
  if (!to) return failed(`desired version ${desired} is not a valid BottlerocketShadow version`);
  try {
    return { result: { status: "Success" }, convertedObjects: objects.map((object) => convertShadow(object, to)) };
  } catch (error) {
    return failed(
      `the objects could not be converted to ${desired}: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

// `Failure` is Kubernetes' word for what the original calls `Failed`: anything but `Success` fails.
const failed = (message: string): object => ({ result: { status: "Failure", message }, convertedObjects: [] });
