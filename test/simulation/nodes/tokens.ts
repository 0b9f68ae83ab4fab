/** Tokens are signed and checked by the machine: no time passes for it. */
import type { Api } from "../../emulator/api.ts";
import type { Schedule } from "../schedule.ts";

export function waitForTokens(api: Api, { waitFor }: Pick<Schedule, "waitFor">): Api {
  const waiting =
    <A extends readonly unknown[], T>(run: (...args: A) => Promise<T>) =>
    (...args: A): Promise<T> => {
      const work = run(...args);
      waitFor(work);
      return work;
    };
  const { issue, review } = api.tokens;
  return { ...api, tokens: { ...api.tokens, issue: waiting(issue), review: waiting(review) } };
}
