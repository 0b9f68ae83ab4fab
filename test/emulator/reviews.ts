/** Resources that only answer questions: who is this, may they. There is no RBAC, so everything is allowed. */
import type { Api } from "./api.ts";
import { jsonAnswer } from "./answer.ts";
import { isFields } from "./objects.ts";
import type { Fields } from "./objects.ts";
import type { Answer } from "./request.ts";
import type { User } from "./tokens.ts";

type Judge = (api: Api, spec: unknown, user: User) => Fields;

const allowed: Judge = () => ({ allowed: true });

export const REVIEWS: Readonly<Record<string, Judge>> = {
  "/apis/authentication.k8s.io/v1/tokenreviews": (api, spec) => api.tokens.review(spec),
  "/apis/authentication.k8s.io/v1/selfsubjectreviews": (_api, _spec, user) => ({ userInfo: user }),
  "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": allowed,
  "/apis/authorization.k8s.io/v1/subjectaccessreviews": allowed,
};

export function answerReview(api: Api, judge: Judge, body: string, user: User): Answer {
  const review: unknown = JSON.parse(body);
  const fields = isFields(review) ? review : {};
  return jsonAnswer(201, { metadata: {}, ...fields, status: judge(api, fields["spec"], user) });
}
