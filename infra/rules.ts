/** Ordered lists of rules: the first with an opinion wins. */

/** A rule returns a decision, or undefined to leave it to the next rule. */
export type Rule<Subject extends readonly unknown[], Decision> = (...subject: Subject) => Decision | undefined;

/** The decision of the first rule that has one. */
export function firstOf<Subject extends readonly unknown[], Decision>(
  rules: readonly Rule<Subject, Decision>[],
): Rule<Subject, Decision> {
  return (...subject) => {
    for (const rule of rules) {
      const decision = rule(...subject);
      if (decision !== undefined) return decision;
    }
    return undefined;
  };
}
