/** Tokens are signed and checked by the machine: no time passes for it. */
import type { Api } from "../../emulator/api.ts";
import { dig, type Fields, fieldsOf } from "../../emulator/objects.ts";
import type { Schedule } from "../schedule.ts";

/** What the API server's reviews of tokens lack. */
export interface Reviews {
  /** Of audiences: whoever reviews has never heard of them, and says its own. */
  knowsNoAudiences: boolean;
  /** The node of a token's pod, as before Kubernetes 1.30. */
  tellsNoNodes: boolean;
}

const OWN_AUDIENCE = "https://kubernetes.default.svc";

/** `reviews` may change. */
export function waitForTokens(api: Api, { waitFor }: Pick<Schedule, "waitFor">, reviews: Readonly<Reviews>): Api {
  const waiting =
    <A extends readonly unknown[], T>(run: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> => {
      const work = run(...args);
      waitFor(work);
      return work;
    };
  const { issue, review } = api.tokens;
  const reviewed = async (spec: unknown): Promise<Fields> => {
    const status = await review(spec);
    const isKnown = reviews.knowsNoAudiences && status["authenticated"] === true;
    const told = isKnown ? { ...status, audiences: [OWN_AUDIENCE] } : status;
    return reviews.tellsNoNodes ? withoutNode(told) : told;
  };
  return { ...api, tokens: { ...api.tokens, issue: waiting(issue), review: waiting(reviewed) } };
}

function withoutNode(status: Fields): Fields {
  const extra = Object.entries(fieldsOf(dig(status, "user", "extra")));
  const left = Object.fromEntries(extra.filter(([key]) => !key.includes("/node-")));
  return { ...status, user: { ...fieldsOf(status["user"]), extra: left } };
}
