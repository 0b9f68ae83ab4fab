/** Incidents of agents that are not what they seem to be: their tokens are others', or they say what is not so. */
import { NAMESPACE } from "../names.ts";
import { type Action, insist, pause, type People } from "../person.ts";
import { podOf } from "./fleet.ts";
import {
  anyHost,
  fleetOf,
  hostThat,
  isAnnounced,
  PASSES_MS,
  reboot,
  shadowPath,
  speakAs,
  statusOf,
} from "./moments.ts";

const OTHERS = "default";

const drainOf = (people: People, remaining: number): object => {
  const at = new Date(people.schedule.now()).toISOString();
  return { started_at: at, round_at: at, remaining, blocked: [] };
};
export const FALSE_AGENTS: Readonly<Record<string, Action>> = {
  /** A token of another account, of another node's agent, or one that nobody has reviewed for us. */
  falseAgent: async (people) => {
    const { draw, world } = people;
    const { reviews, tokenOf, speak } = fleetOf(people);
    const host = anyHost(people);
    const route = draw.of(["create", "cordonAndDrain", "uncordon", "excludeFromLb"] as const);
    const how = draw.of(["account", "node", "audience"] as const);
    if (how === "account") {
      const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: OTHERS, namespace: NAMESPACE } };
      if (!world.store.get("serviceaccounts", NAMESPACE, OTHERS)) world.store.create("serviceaccounts", account);
      const token = await tokenOf(podOf(host.name), OTHERS);
      await speak(host, { route, token, as: "another account" });
    }
    if (how === "node") {
      const others = fleetOf(people).hosts.filter(({ name }) => name !== host.name);
      reviews.tellsNoNodes = true;
      const token = await tokenOf(podOf(draw.of(others).name));
      await speak(host, { route, token, as: "the agent of another node" });
      reviews.tellsNoNodes = false;
    }
    if (how === "audience") {
      reviews.knowsNoAudiences = true;
      await speak(host, { route, as: "a token that is reviewed for another audience" });
      reviews.knowsNoAudiences = false;
    }
  },
  /** An agent drains a node that need not, and writes what the node API alone may know. */
  falseDrain: async (people) => {
    const host = anyHost(people);
    await fleetOf(people).speak(host, { route: "cordonAndDrain" });
    await speakAs(people, host, { drain: drainOf(people, 0) });
    await speakAs(people, host, { rebooting: reboot(people, host) });
  },
  falseAnnouncement: async (people) => {
    const host = await hostThat(people, (one) => (statusOf(people, one).drain?.remaining ?? 0) > 0);
    if (host) await speakAs(people, host, { rebooting: reboot(people, host) });
  },
  /** A drained node whose reboot nobody wants any more: its agent announces it; or says that all is over. */
  drainedInVain: async (people) => {
    const { silence, speak } = fleetOf(people);
    const host = await hostThat(people, (one) => Boolean(statusOf(people, one).drain));
    if (!host) return;
    silence(host, 2 * PASSES_MS);
    for (let rounds = 0; rounds < 6 && statusOf(people, host).drain?.remaining !== 0; rounds++) {
      await pause(people, 3000);
      await speak(host, { route: "cordonAndDrain" });
    }
    if (people.draw.chance(0.5)) return await speakAs(people, host, { current_state: "Idle" });
    await insist(people, shadowPath(host), { spec: { state: "Idle" } });
    await speakAs(people, host, { rebooting: reboot(people, host) });
  },
  uncordonInReboot: async (people) => {
    const host = await hostThat(people, isAnnounced(people));
    if (host) await fleetOf(people).speak(host, { route: "uncordon" });
  },
};
