/** `npm run bench -- compare` takes any program with the original's flags and paths. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { flagsOf, readOriginal } from "./original.ts";
import { reviewRequest, sendLoad } from "./review-load.ts";
import { prepareServers } from "./review-server.ts";
import { writeStandIn } from "./stand-in.ts";

describe("the program of ORIGINAL", () => {
  let folder: string;
  before(async () => void (folder = await mkdtemp(join(tmpdir(), "original-"))));
  after(() => rm(folder, { recursive: true }));

  it("has to be set, and to be executable", async () => {
    const plain = join(folder, "plain");
    await writeFile(plain, "");
    for (const [env, why] of [
      [{}, /^Error: ORIGINAL is not set: .*ORIGINAL=\/path npm run bench -- compare/],
      [{ ORIGINAL: "" }, /ORIGINAL is not set/],
      [{ ORIGINAL: plain }, /ORIGINAL=.*plain is no file that can be executed/],
      [{ ORIGINAL: join(folder, "missing") }, /missing is no file that can be executed/],
    ] as const)
      assert.throws(
        () => readOriginal(env),
        (error) => why.test(String(error)),
        String(why),
      );
  });

  it("gets each variable as the flag of the same words, and ORIGINAL_FLAGS last", () => {
    assert.deepEqual(flagsOf({ SERVER_TLS_CERT_FILE: "/c" }), ["-server-tls.cert-file=/c"]);
    assert.throws(() => flagsOf({ NO_SUCH: "1" }), /no flag has the words of NO_SUCH/);
    const { args } = readOriginal({ ORIGINAL: process.execPath, ORIGINAL_FLAGS: " -log.level=debug  -x=1" });
    const flags = args({ KUBERNETES_NAMESPACE: "default" });
    assert.deepEqual([flags[0], ...flags.slice(-2)], ["-kubernetes.namespace=default", "-log.level=debug", "-x=1"]);
  });

  it("is started, answers reviews and is ended: here it is our server under its flags", async () => {
    const serve = join(import.meta.dirname, "../../functions/serve.ts");
    const original = readOriginal({ ORIGINAL: await writeStandIn(folder, serve) });
    const startServer = await prepareServers(folder);
    const request = reviewRequest(3);
    const server = await startServer(original, request);
    try {
      const { perSecond } = await sendLoad(server.target, { request, count: 20, connections: 2 });
      assert.ok(perSecond > 0);
    } finally {
      await server.end();
    }
  });
});
