/** `zonewise doctor`: objects that were accepted and do not do what they are meant for. */
import { EXIT } from "../exit.ts";
import { examine } from "../gather/examine.ts";
import { print } from "../output/print.ts";
import type { Command } from "../session.ts";

export const doctor: Command = {
  name: "doctor",
  arguments: "",
  summary: "Finds objects that are half configured: StatefulSets, budgets, webhooks, rights",
  flags: [
    {
      flag: "--pre",
      summary: "before an installation: may you install, is the cluster recent enough, is the original there",
    },
  ],
  exits: { 0: "nothing is wrong; there may be warnings", 1: "something is wrong" },
  async run(session, { flags }) {
    const findings = await examine(session, flags["pre"] === true);
    const { style } = session.io;
    print(session, findings, () => {
      const blocks = findings.map(({ level, check, object, message, fix }) => {
        const title = style(level === "error" ? "bad" : "waiting", level);
        return `${title}  ${object}: ${message} (${check})\n       ${fix}\n`;
      });
      return blocks.join("") || "nothing found\n";
    });
    return findings.some(({ level }) => level === "error") ? EXIT.no : EXIT.ok;
  },
};
