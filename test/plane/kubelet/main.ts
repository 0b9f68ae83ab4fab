/** The simulated kubelets as a process: main.ts KUBECONFIG. */
import { connectAdmin } from "../../cluster/stage/client.ts";
import { follow } from "../../cluster/stage/follow.ts";
import type { Pod } from "../../emulator/controllers/objects.ts";
import { createNodes } from "./nodes.ts";
import { simulate } from "./simulate.ts";

const admin = await connectAdmin(process.argv[2]);
const { signal } = new AbortController();
const { onNode, onPod } = simulate(admin);
await createNodes(admin);
await follow(admin, "/api/v1/nodes", signal, onNode);
await follow(admin, "/api/v1/pods", signal, (type, pod) => onPod(type, pod as Pod));
