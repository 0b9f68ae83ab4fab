/**
 * Converts shadows between v1 and v2 by the original's tables (§17.8), and keeps their metadata, labels and annotations
 * too. A ConversionReview is answered with all objects in their order, or with none and the reason.
 */
import * as z from "zod";
import { type Fields, fieldsOf, isFields } from "../../infra/json.ts";
import { SHADOW_GROUP } from "./shadow.ts";

type Version = "v1" | "v2";

const TO_V2: Fields = { StagedUpdate: "StagedAndPerformedUpdate", PerformedUpdate: "StagedAndPerformedUpdate" };
const TO_V1: Fields = { StagedAndPerformedUpdate: "StagedUpdate", ErrorReset: "MonitoringUpdate" };
const STATES_FOR = { v1: TO_V1, v2: TO_V2 };

const stateFor = (state: unknown, version: Version): unknown =>
  typeof state === "string" ? (STATES_FOR[version][state] ?? state) : state;

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
  const { state, ...spec } = fieldsOf(fields["spec"]);
  const status = isFields(fields["status"]) ? fields["status"] : undefined;
  return {
    ...fields,
    apiVersion: `${SHADOW_GROUP}/${to}`,
    spec: {
      state_transition_timestamp: null,
      version: null,
      ...spec,
      state: stateFor(state, to),
    },
    ...(status && { status: convertStatus(status, to) }),
  };
}

/** v1 has no field for the others. */
function convertStatus(status: Fields, to: Version): Fields {
  const current_state = stateFor(status["current_state"], to);
  if (to === "v2") return { crash_count: 0, state_transition_failure_timestamp: null, ...status, current_state };
  const { current_version, target_version } = status;
  return { current_version, target_version, current_state };
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
