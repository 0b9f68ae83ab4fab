/** Completions in real shells: each runs in a terminal of its own, loads the script, and somebody presses Tab. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { tmpdir } from "node:os";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { bundle } from "../../infra/build.ts";
import { COMPILED } from "../functions/process.ts";
import { setBudgetStage } from "../reconciler/budget-stage.ts";
import type { Stage } from "../reconciler/stage.ts";

const ROOT = join(import.meta.dirname, "../..");

interface Shell {
  /** What the shell runs before its prompt. */
  readonly startFile: string;
  readonly setUp: string;
  readonly command: (folder: string) => string;
}

/** Escape and q: the line as it then is goes to the file `line`, and the shell ends. */
const SHELLS: Readonly<Record<string, Shell>> = {
  bash: {
    startFile: "bashrc",
    setUp: `source <(zonewise completion bash)\nfinish() { printf %s "$READLINE_LINE" > "$FOLDER/line"; exit; }\nbind -x '"\\eq": finish'\n`,
    command: (folder) => `bash --noprofile --rcfile ${folder}/bashrc -i`,
  },
  zsh: {
    startFile: ".zshrc",
    setUp: `autoload -U compinit; compinit -u -D\nsource <(zonewise completion zsh)\nfinish() { print -rn -- "$BUFFER" > "$FOLDER/line"; exit; }\nzle -N finish; bindkey "\\eq" finish\n`,
    command: (folder) => `env ZDOTDIR=${folder} zsh -d -i`,
  },
  fish: {
    startFile: "config.fish",
    setUp: `zonewise completion fish | source\nfunction finish; commandline | string collect | read -z line; printf %s (string trim -r -c \\n -- $line) > $FOLDER/line; exit; end\nbind \\eq finish\n`,
    command: (folder) => `fish --no-config --init-command 'source ${folder}/config.fish' -i`,
  },
};

const LINES = [
  { typed: "zonewise pla", line: "zonewise plan " },
  { typed: "zonewise status ing", line: "zonewise status ingester " },
  {
    typed: "zonewise -n default explain sts/ingester-zone-b",
    line: "zonewise -n default explain sts/ingester-zone-b ",
  },
  { typed: "zonewise status --time", line: "zonewise status --timeout " },
  { typed: "zonewise status -o y", line: "zonewise status -o yaml " },
  { typed: "zonewise status nothing-has-this-name", line: "zonewise status nothing-has-this-name" },
];

function isInstalled(name: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

describe("completions", { timeout: 300_000 }, () => {
  let stage: Stage;
  let folder: string;
  before(async () => {
    stage = await setBudgetStage();
    folder = await mkdtemp(join(tmpdir(), "zonewise-shells-"));
    await stage.emulator.writeKubeconfig(join(folder, "kubeconfig"));
    await bundle({ "cli/main": "cli/main.ts" }, ROOT, folder);
    await writeFile(join(folder, "package.json"), `{ "type": "module" }`);
    const main = join(folder, "cli/main.js");
    for (const name of Object.keys(SHELLS)) {
      const { stdout } = await promisify(execFile)(process.execPath, [main, "completion", name], { cwd: folder });
      await writeFile(join(folder, name), stdout);
    }
    // The script of a shell is the same each time.
    const program = `[ "$1" = completion ] && exec cat ${folder}/$2\nexec ${process.execPath} ${main} "$@"`;
    await writeFile(join(folder, "zonewise"), `#!/bin/sh\n${program}\n`);
    await chmod(join(folder, "zonewise"), 0o755);
  });
  after(async () => {
    await stage.close();
    await rm(folder, { recursive: true });
  });

  /** The line after `typed` and a Tab. */
  async function press(name: string, shell: Shell, typed: string): Promise<string> {
    const own = await mkdtemp(join(folder, `${name}-`));
    await writeFile(join(own, shell.startFile), shell.setUp);
    const child = spawn("script", ["-qec", shell.command(own), "/dev/null"], {
      // A shell that waits for more.
      timeout: 60_000,
      env: {
        HOME: own,
        FOLDER: own,
        TERM: "xterm",
        PATH: `${folder}${delimiter}${process.env["PATH"]}`,
        KUBECONFIG: join(folder, "kubeconfig"),
        NODE_DISABLE_COLORS: "1",
        ...COMPILED,
      },
    });
    let seen = "";
    child.stdout.on("data", (chunk) => (seen += chunk));
    child.stdin.write(`${typed}\t\u001Bq`);
    await new Promise((resolve) => child.on("close", resolve));
    return await readFile(join(own, "line"), "utf8").catch(() => assert.fail(`the shell has shown no line: ${seen}`));
  }

  for (const [name, shell] of Object.entries(SHELLS)) {
    const skip =
      isInstalled(name) && isInstalled("script")
        ? false
        : `there is no ${name}, or no script: apt-get install ${name} bsdutils`;
    describe(`in ${name}`, { skip }, () => {
      for (const { typed, line } of LINES)
        it(`${typed} and a Tab: ${line}`, async () => assert.equal(await press(name, shell, typed), line));
    });
  }
});
