/** Asks the API server which rights a user lacks. */
import { accessReviews, subjectReviews } from "../../infra/kubernetes/resources.ts";
import type { Right } from "../decide/doctor/rights.ts";
import type { Session } from "../session.ts";

/** The rights that the user, the caller by default, does not have. */
export async function findDenied(
  { cluster, namespace }: Pick<Session, "cluster" | "namespace">,
  rights: readonly Right[],
  user?: string,
): Promise<Right[]> {
  const isAllowed = rights.map(async (right) => {
    const attributes = { ...right, ...(user !== undefined && { namespace }) };
    const spec = { resourceAttributes: attributes, ...(user !== undefined && { user }) };
    const type = { apiVersion: "authorization.k8s.io/v1" };
    const { status } =
      user === undefined
        ? await cluster.create(accessReviews, { body: { ...type, kind: "SelfSubjectAccessReview", spec } })
        : await cluster.create(subjectReviews, { body: { ...type, kind: "SubjectAccessReview", spec } });
    return status?.allowed === true;
  });
  const answers = await Promise.all(isAllowed);
  return rights.filter((_, i) => !answers[i]);
}
