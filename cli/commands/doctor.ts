/** `zonewise doctor`: finds objects that were accepted but do not do what they are meant for. */
import { EXIT } from "../exit.ts";
import { examine } from "../gather/examine.ts";
import { gatherTicking } from "../gather/ticking.ts";
import { print } from "../output/print.ts";
import { layRemedy, wrapAfter } from "../output/table.ts";
import type { Command } from "../session.ts";

const STYLES = { error: "bad", warning: "warning" } as const;

export const doctor: Command = {
  name: "doctor",
  arguments: "",
  group: "Check",
  summary: "Find settings that do not work as intended",
  examples: [
    ["doctor", "check the namespace"],
    ["doctor -A", "check all namespaces"],
  ],
  flags: [],
  exits: {
    0: "no error; there may be warnings",
    1: "an error",
    4: "no error found, but something could not be checked",
  },
  asksTicking: true,
  async run(session) {
    const findings = await examine(session, await gatherTicking(session));
    const { io } = session;
    print(session, findings, () => {
      const blocks = findings.map(({ level, check, object, message, fix }) => {
        const title = io.style(STYLES[level], level);
        const found = wrapAfter(`${object}: ${message} (${check})`, level.length + 2, io);
        return `${title}  ${found}\n${fix === "" ? "" : `       ${layRemedy(fix, 7, io).trimStart()}\n`}`;
      });
      return blocks.join("") || "no problems found\n";
    });
    if (findings.some(({ level }) => level === "error")) return EXIT.no;
    return findings.some(({ check }) => check === "not-checked") ? EXIT.unknown : EXIT.ok;
  },
};
