/**
 * Prints, for each container of a namespace that ends, a line `<pod> <container>=<exit code>`, until SIGTERM: exits.ts
 * NAMESPACE.
 */
import { connectAdmin } from "../../cluster/stage/client.ts";
import { follow, type Followed } from "../../cluster/stage/follow.ts";

interface Pod extends Followed {
  readonly status?: {
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly state?: { readonly terminated?: { readonly exitCode: number } };
    }[];
  };
}

const [namespace = ""] = process.argv.slice(2);
const admin = await connectAdmin(process.env["KUBECONFIG"]);
const printed = new Set<string>();
const stop = new AbortController();
process.once("SIGTERM", () => {
  stop.abort();
  admin.close();
});

await follow(admin, `/api/v1/namespaces/${namespace}/pods`, stop.signal, (_type, pod) => {
  for (const { name, state } of (pod as Pod).status?.containerStatuses ?? []) {
    const line = `${pod.metadata?.name} ${name}=${state?.terminated?.exitCode}\n`;
    if (state?.terminated === undefined || printed.has(line)) continue;
    printed.add(line);
    process.stdout.write(line);
  }
});
