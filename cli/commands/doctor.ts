/** `zonewise doctor`: objects that were accepted and do not do what they are meant for. */
import { examineTicking } from "../decide/findings.ts";
import { EXIT } from "../exit.ts";
import { examine } from "../gather/examine.ts";
import { hasOurs } from "../gather/groups.ts";
import { gatherTicking } from "../gather/ticking.ts";
import { print } from "../output/print.ts";
import type { Command, Session } from "../session.ts";

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
  asksTicking: true,
  async run(session, { flags }) {
    const isBefore = flags["pre"] === true;
    const ticking = isBefore ? [] : examineTicking(await gatherTickingOf(session));
    const findings = [...ticking, ...(await examine(session, isBefore))];
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

/** A namespace without anything of ours needs no reconciler. */
async function gatherTickingOf(session: Session) {
  const noTicks = await gatherTicking(session);
  if (noTicks.every(({ reason }) => reason !== "NotInstalled") || (await hasOurs(session))) return noTicks;
  session.io.warn(
    session.namespace === ""
      ? "no namespace has anything of Zonewise\n"
      : `namespace ${session.namespace} has nothing of Zonewise: say another one with -n, or -A\n`,
  );
  return noTicks.filter(({ reason }) => reason !== "NotInstalled");
}
