/**
 * Decodes lists of pods, and failures, from protobuf. The field numbers are those of k8s.io/api/core/v1/generated.proto
 * and k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto; every field that is read is also in the type `PodObject`.
 */
import {
  createDecoder,
  type Decoder,
  decodeResponse,
  element,
  entry,
  flag,
  integer,
  type Message,
  object,
  text,
  time,
} from "./protobuf.ts";

const OWNER: Message = {
  1: text("kind"),
  3: text("name"),
  4: text("uid"),
  5: text("apiVersion"),
  6: flag("controller"),
};

const METADATA: Message = {
  1: text("name"),
  3: text("namespace"),
  5: text("uid"),
  6: text("resourceVersion"),
  8: time("creationTimestamp"),
  9: time("deletionTimestamp"),
  11: entry("labels"),
  12: entry("annotations"),
  13: element("ownerReferences", OWNER),
};

const CONDITION: Message = { 1: text("type"), 2: text("status"), 4: time("lastTransitionTime"), 5: text("reason") };

const CONTAINER: Message = {
  2: object("state", { 1: object("waiting", { 1: text("reason") }), 2: object("running", { 1: time("startedAt") }) }),
  4: flag("ready"),
  5: integer("restartCount"),
  6: text("image"),
};

const POD_STATUS: Message = {
  1: text("phase"),
  2: element("conditions", CONDITION),
  7: time("startTime"),
  8: element("containerStatuses", CONTAINER),
  10: element("initContainerStatuses", CONTAINER),
};

const LIST_METADATA: Message = { 2: text("resourceVersion"), 3: text("continue"), 4: integer("remainingItemCount") };
const POD: Message = { 1: object("metadata", METADATA), 3: object("status", POD_STATUS) };
const POD_LIST: Message = { 1: object("metadata", LIST_METADATA), 2: element("items", POD) };
const STATUS: Message = { 2: text("status"), 3: text("message"), 4: text("reason"), 6: integer("code") };

/** A decoder of one list of pods, or of one page. */
export const createPodListDecoder = (): Decoder => createDecoder("PodList", POD_LIST);

/** Decodes a metav1.Status; throws if `bytes` is none. */
export function decodeStatus(bytes: Buffer): unknown {
  return decodeResponse(bytes, "Status", STATUS);
}
