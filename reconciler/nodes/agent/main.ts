#!/usr/bin/env node
/**
 * Entry of the agent, one a node: configuration -> rounds until the host reboots -> exit code (0 also after a reboot
 * was asked for, 2 bad configuration).
 */
import * as z from "zod/mini";
import en from "zod/v4/locales/en.js";
import { runEntry } from "../../../infra/process.ts";
import { startAgent } from "./start.ts";

// zod/mini has no error messages of its own.
z.config(en());

await runEntry("the agent failed", async (stop) => {
  const places = {
    hostSocket: "/run/api.sock",
    bootId: "/proc/sys/kernel/random/boot_id",
    token: "/var/run/secrets/tokens/bottlerocket-agent-service-account-token",
    ca: "/etc/brupop-tls-keys/ca.crt",
    account: "/var/run/secrets/kubernetes.io/serviceaccount",
    nodeApi: ({ namespace, apiPort }: { readonly namespace: string; readonly apiPort: number }) =>
      new URL(`https://brupop-apiserver.${namespace}.svc.cluster.local:${apiPort}`),
  };
  await startAgent(process.env, places, { stop });
  return 0;
});
