/** Who the API server takes the actors for: controllers of the cluster, kubelets and our reconciler; all others are one user. */
import type { Api } from "../emulator/api.ts";
import { ADMIN_TOKEN, type User } from "../emulator/tokens.ts";
import { NAMESPACE } from "./names.ts";

const account = (name: string, namespace = "kube-system"): User => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`, "system:authenticated"],
});
const named = (username: string, ...groups: readonly string[]): User => ({
  username,
  groups: [...groups, "system:authenticated"],
});

/** Actors that must delete pods at any time. */
export const CONTROLLERS: Readonly<Record<string, User>> = {
  "statefulset-controller": account("statefulset-controller"),
  "garbage-collector": account("generic-garbage-collector"),
  // Of a controller manager without an account for each controller.
  "node-controller": named("system:kube-controller-manager"),
  scheduler: named("system:kube-scheduler"),
  kubelet: named("system:node:node-1", "system:nodes"),
};

const ACCOUNTS: Readonly<Record<string, User>> = {
  ...CONTROLLERS,
  reconciler: account("zonewise-reconciler", NAMESPACE),
};

const PREFIX = "actor:";

/** By the actor's name without its number. */
export const tokenOf = (actor: string): string => (Object.hasOwn(ACCOUNTS, actor) ? `${PREFIX}${actor}` : ADMIN_TOKEN);

export function knowAccounts(api: Api): Api {
  const { authenticate } = api.tokens;
  return {
    ...api,
    tokens: {
      ...api.tokens,
      authenticate(token = "") {
        const user = ACCOUNTS[token.replace(PREFIX, "")];
        return user && token.startsWith(PREFIX) ? Promise.resolve(user) : authenticate(token);
      },
    },
  };
}
