/**
 * `zonewise dump`: the objects that decisions about a group are made from, and the decisions, in one file without
 * secrets: to attach to an issue, or to simulate further (docs/simulation.md).
 */
import { writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import own from "../../package.json" with { type: "json" };
import { messageOf } from "../../infra/errors.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { findSecrets, namesOf, prune, scrub } from "../decide/redact.ts";
import { CliError, EXIT } from "../exit.ts";
import { gatherDump } from "../gather/dump.ts";
import { gatherZonesOf } from "../gather/groups.ts";
import { print } from "../output/print.ts";
import type { Command, Session } from "../session.ts";
import { explain } from "./explain.ts";
import { history } from "./history.ts";
import { plan } from "./plan.ts";

/** Version of the file; readers refuse any other. */
export const DUMP_VERSION = 1;

export const dump: Command = {
  name: "dump",
  arguments: "<group>",
  summary:
    "All objects of a group and the decisions about it, without secrets, in one file: for an issue, or to play on",
  flags: [{ flag: "--file <path>", summary: "where it is written; - for standard output, not compressed" }],
  exits: { 0: "it was written; it says what could not be read" },
  completes: "groups",
  async run(session, { args: [group = ""], flags: { file } }) {
    const zones = await gatherZonesOf(session, session.namespace, group);
    const namespace = zones[0]?.namespace ?? session.namespace;
    const { objects, unread } = await gatherDump(session, group, zones);
    const asked = { ...session, namespace };
    const decisions = {
      plan: await decisionOf(plan, asked, group),
      explain: Object.fromEntries(
        await Promise.all(
          [`group/${group}`, ...zones.map(({ name }) => `statefulset/${name}`)].map(
            async (object) => [object, await decisionOf(explain, asked, object)] as const,
          ),
        ),
      ),
      history: await decisionOf(history, asked, group),
      noTicks: session.noTicks,
    };
    const now = session.clock.now();
    const names = new Set([...namesOf(objects), group]);
    const { value, changed } = scrub(
      {
        namespace,
        group,
        settings: await session.settings(namespace),
        objects: objects.flatMap((object) => prune(object) ?? []),
        decisions,
        unread,
      },
      findSecrets(objects),
      names,
    );
    const text = JSON.stringify({
      kind: "ZonewiseDump",
      version: DUMP_VERSION,
      zonewise: own.version,
      takenAt: formatTimestamp(now),
      ...(value as object),
    });
    if (file === "-") {
      session.io.write(`${text}\n`);
      return EXIT.ok;
    }
    const path =
      typeof file === "string" ? file : `zonewise-${group}-${formatTimestamp(now).replaceAll(/[-:]/g, "")}.json.gz`;
    write(path, gzipSync(text));
    const told = { file: path, objects: objects.length, redacted: changed, unread };
    print(session, told, () =>
      [
        `${path}: ${objects.length} objects, ${changed} texts redacted`,
        ...unread.map((what) => `not read: ${what}`),
        "Secrets, ConfigMaps, logs and environment variables are not in it. Read it before you send it: zcat FILE | less",
        "",
      ].join("\n"),
    );
    return EXIT.ok;
  },
};

/** The output of the command with `-o json`, or the reason why there is none. */
async function decisionOf(command: Command, session: Session, name: string): Promise<unknown> {
  let text = "";
  const io = { ...session.io, write: (part: string) => void (text += part), isTty: false };
  try {
    await command.run({ ...session, output: "json", io }, { args: [name], flags: {} });
    return JSON.parse(text) as unknown;
  } catch (error) {
    return { error: messageOf(error) };
  }
}

/** Writes a file that only its owner may read. Throws a `CliError`, also if the file exists. */
function write(path: string, content: Uint8Array): void {
  try {
    writeFileSync(path, content, { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw new CliError(`${path} cannot be written: ${messageOf(error)}`, { exitCode: EXIT.usage });
  }
}
