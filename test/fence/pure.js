/** A lint rule of our own: pure folders read no clock and import nothing at run time. The names that oxlint can forbid itself stand in .oxlintrc.json. */
const message = "pure folder: time is part of the snapshot";

const impure = {
  create(context) {
    const report = (node) => context.report({ node, message });
    return {
      NewExpression: (node) => node.callee.name === "Date" && node.arguments.length === 0 && report(node),
      CallExpression: (node) => node.callee.name === "Date" && report(node),
      ImportExpression: (node) => context.report({ node, message: "pure folder: no import at run time" }),
    };
  },
};

export default { meta: { name: "pure" }, rules: { "no-clock": impure } };
