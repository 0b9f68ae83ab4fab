/** Flags of every command. */
import type { Flag } from "./session.ts";

export const GLOBAL_FLAGS: readonly Flag[] = [
  { flag: "-n, --namespace <name>", summary: "the namespace; that of the context by default", completes: "namespaces" },
  { flag: "-A, --all-namespaces", summary: "all namespaces" },
  { flag: "--context <name>", summary: "a context of the kubeconfig" },
  {
    flag: "--kubeconfig <file>",
    summary: "the kubeconfig; by default KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount",
  },
  { flag: "--as <user>", summary: "impersonate this user" },
  { flag: "--as-group <group>", summary: "and this group; may be given several times", repeats: true },
  { flag: "--request-timeout <duration>", summary: "how long a call may take, 10s by default" },
  {
    flag: "-o, --output <format>",
    summary: "table, wide (all columns, whatever the terminal's width), name (of objects, for kubectl), json or yaml",
    choices: ["table", "wide", "name", "json", "yaml"],
  },
  { flag: "--no-color", summary: "no colours, as with NO_COLOR" },
];

/** The values of a flag that may be given several times. */
export const collectFlag = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value,
];
