/** Flags of every command. */
import type { Flag } from "./session.ts";

export const GLOBAL_FLAGS: readonly Flag[] = [
  { flag: "-n, --namespace <name>", summary: "namespace; by default that of the context" },
  { flag: "-A, --all-namespaces", summary: "all namespaces" },
  { flag: "--context <name>", summary: "context of the kubeconfig" },
  { flag: "--kubeconfig <file>", summary: "default: KUBECONFIG, ~/.kube/config, the pod's account" },
  { flag: "--as <user>", summary: "act as this user" },
  { flag: "--as-group <group>", summary: "and as this group; repeatable", repeats: true },
  { flag: "--request-timeout <duration>", summary: "for each call; 10s by default" },
  {
    flag: "-o, --output <format>",
    summary: "table, wide (all columns), json or yaml",
    choices: ["table", "wide", "json", "yaml"],
  },
  { flag: "--no-color", summary: "no colours, as with NO_COLOR" },
];

/** The values of a flag that may be given several times. */
export const collectFlag = (value: string, before: readonly string[] | undefined): readonly string[] => [
  ...(before ?? []),
  value,
];
