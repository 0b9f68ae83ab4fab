/** The fields that distinguish one object from another, and one version of it from the next. */
import type { ObjectMeta } from "./resources.ts";

export interface Identity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** The identity of an object; fields that its metadata lacks are "". */
export function readIdentity({
  namespace = "",
  name = "",
  uid = "",
  resourceVersion = "",
}: Partial<Identity & ObjectMeta>): Identity {
  return { namespace, name, uid, resourceVersion };
}
