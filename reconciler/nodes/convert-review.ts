/** Answers a ConversionReview of BottlerocketShadows: all objects in their order, or none with the reason. */
import * as z from "zod";
import { convertShadow, versionOf } from "./convert.ts";

const conversionReview = z.looseObject({
  apiVersion: z.string(),
  kind: z.literal("ConversionReview"),
  request: z.looseObject({ uid: z.string(), desiredAPIVersion: z.string(), objects: z.array(z.unknown()) }),
});

/** The review that is answered; undefined if the body is no ConversionReview. */
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
