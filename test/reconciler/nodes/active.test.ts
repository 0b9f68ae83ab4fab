/** What becomes of active nodes: their steps, deadlines, lost labels and adoption (§17.2-§17.4). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describePlan, passOf, planOf, table } from "./adapter.ts";
import { at, busyNode, entry, NOW, policy } from "./fixture.ts";

table(
  "the steps of an active node",
  `
  waits for the agent that stages | a S/I Staging fresh | slots a Staging
  reboots once staged | a S/S Staging | wants a R; slots a Holding
  does not reboot a node that is not Ready | a S/S Holding notready | slots a Holding
  does not reboot a node that is being removed | a S/S Holding removed | slots a Holding
  does not reboot a node that is being deleted | a S/S Holding deleted | slots a Holding
  does not reboot while a drain would not succeed | a S/S Holding obstacle | slots a Holding
  nor while a rollout is in progress | a S/S Holding rollout | slots a Holding
  reads its pods before | a S/S Holding unread | slots a Holding; reads a
  waits for the drain | a R/S Draining | slots a Draining
  monitors a node that has come back | a R/R Returning newboot | wants a M; slots a Returning
  does not monitor a node that is not Ready | a R/R Returning newboot notready | slots a Returning
  finishes a healthy node | a M/M Monitoring newboot updated | wants a I; slots a Monitoring
  waits for its work | a M/M Monitoring newboot updated missing | slots a Monitoring
  wants a new boot | a M/M Monitoring updated | slots a Monitoring
  not if its first boot is not known | a M/M Monitoring updated noboot | wants a I; slots a Monitoring
  wants the new version | a M/M Monitoring newboot | slots a Monitoring
  wants it Ready | a M/M Monitoring newboot updated notready | slots a Monitoring
  for long enough | a M/M Monitoring justready updated | slots a Monitoring
  and again after one more reboot | a M/M Monitoring newboot updated rebootedagain | slots a Monitoring
  unless that is dated ahead | a M/M Monitoring newboot updated reportedahead | wants a I; slots a Monitoring
  and not before it reported | a M/M Monitoring newboot updated fresh | slots a Monitoring
  nor by a clock that is some seconds ahead | a M/M Monitoring secondsahead updated | slots a Monitoring
  but in time if that was an hour ahead | a M/M Monitoring hourahead updated | wants a I; slots a Monitoring
  and then not before | a M/M Monitoring hourahead updated fresh | slots a Monitoring
  sends a failed node back to Idle | a S/E Staging
    | wants a I; slots a Recovering ends UpdateFailed; deferred a UpdateFailed 0
  leaves a failed node alone that is on its way to Idle | a I/E Recovering | slots a Recovering
  repeats a start whose answer was lost | a Starting fresh | wants a S; slots a Starting
  not if it is switched off by now | a Starting fresh {enabled: false} | slots a Starting
  nor if the window is closed | a Starting fresh {window: {cron: "* * 3 * * *"}} | slots a Starting
  takes back a wish for ErrorReset | a E/I Staging
    | wants a I; slots a Recovering ends UpdateFailed; deferred a UpdateFailed 0
  frees the slot of a node that has finished | a updated leftover Recovering, b | wants b S; slots b Starting
  keeps it until our cordon is off | a updated leftover Recovering cordoned, b
    | slots a Recovering; skips b LimitReached
  frees the slot of a node that was made again | a replaced Staging, b
    | wants b S; slots b Starting; deferred a NodeGone 0; skips a AgentSilent
  and of one that is gone | b {status: lost} | wants b S; slots b Starting
  wipes what is left of an update, without taking a slot | a updated leftover, b
    | wants b S, a I -; slots b Starting
  makes no write for a settled node (silence) | a updated | nothing
  lets running updates finish while it is switched off | a S/S Holding {enabled: false} | wants a R; slots a Holding
  and outside the window | a S/S Holding {window: {cron: "* * 3 * * *"}} | wants a R; slots a Holding
`,
  { named: { lost: { active: [entry("a")] } } },
);

table(
  "nodes that no list of active nodes has",
  `
  are taken in, and sent back while they stage | a S/I, b
    | wants a I; slots a Staging ends TakenOver; skips b LimitReached
  while they are drained | a R/S, b | wants a I; slots a Draining ends TakenOver; skips b LimitReached
  and if the host did not get the call to reboot | a R/S announced, b
    | wants a I; slots a Rebooting ends TakenOver; skips b LimitReached
  come back first if they reboot | a R/S announced notready, b
    | slots a Rebooting ends TakenOver; skips b LimitReached
  go on once they have rebooted | a R/R newboot, b | wants a M; slots a Returning; skips b LimitReached
  and if their shadow is an earlier node's | a R/S replaced | wants a I; skips a AgentSilent
`,
);

table(
  "a deadline",
  `
  frees the slot of a node that does not stage | a S/I Staging late
    | wants a I; deferred a StagingTimeout 1; skips a Recovering
  freezes if that node is not Ready | a S/I Staging late notready
    | slots a Staging; failed a StagingTimeout; frozen StagingTimeout
  sends back a node that is held too long, without a failure | a S/S Holding late obstacle
    | wants a I; deferred a HeldTooLong 0; skips a Recovering
  undoes a drain that does not end, and keeps the slot until that is done | a R/S Draining late cordoned
    | wants a I; slots a Draining ends DrainTimeout; deferred a DrainTimeout 1
  freezes if a draining node is not Ready | a R/S Draining late cordoned notready
    | slots a Draining; failed a DrainTimeout; frozen DrainTimeout
  freezes for a node that does not come back from its reboot | a R/S Rebooting late cordoned notready announced
    | slots a Rebooting; failed a RebootTimeout; frozen RebootTimeout
  freezes for a node that was to reboot and did not | a R/S Rebooting late cordoned announced
    | slots a Rebooting; failed a RebootTimeout; frozen RebootTimeout
  freezes for a node whose agent does not report after the reboot | a R/S Rebooting late cordoned newboot
    | slots a Rebooting; failed a RebootTimeout; frozen RebootTimeout
  freezes for a node that came back and is not Ready | a R/R Returning late newboot notready
    | slots a Returning; failed a ReturnTimeout; frozen ReturnTimeout
  freezes for one that serves again and whose agent does not say so | a M/R Returning late newboot
    | slots a Returning; failed a ReturnTimeout; frozen ReturnTimeout
  freezes for a node whose work does not come back, and lets it go | a M/M Monitoring late newboot updated missing
    | wants a I; slots a Monitoring ends HealthTimeout; deferred a HealthTimeout 1; failed a HealthTimeout; frozen HealthTimeout
  frees the slot of a node in service whose agent does not report Idle | a I/M Recovering late newboot
    | deferred a RecoveryTimeout 1; skips a Recovering
  freezes for a node that does not become Ready again | a I/E Recovering late notready
    | slots a Recovering; failed a RecoveryTimeout; frozen RecoveryTimeout
  drops a start that is no longer wanted | a nothing Starting late | deferred a StartDropped 0
  is not over if the phase is new | a S/S Staging late obstacle | slots a Holding
  nor if the phase began in the future, as after a step of the clock | a S/I Staging ahead | slots a Staging
`,
);

describe("a phase lasts by default", () => {
  for (const [phase, nodes, seconds] of [
    ["Staging", "a S/I", 1800],
    ["Holding", "a S/S obstacle", 600],
    ["Draining", "a R/S", 3600],
    ["Rebooting", "a R/S announced", 900],
    ["Returning", "a R/R notready", 900],
    ["Monitoring", "a M/M", 960],
    ["Recovering", "a I/E", 300],
  ] as const)
    it(`${phase}: ${seconds} s`, () => {
      const after = (ms: number): string => describePlan(passOf({ nodes: `${nodes} ${phase} fresh`, now: NOW + ms }));
      assert.equal(after(seconds * 1000 - 1000), `slots a ${phase}`);
      assert.match(after(seconds * 1000), /Timeout|HeldTooLong/);
    });

  it("a drain with a forced reboot: as long as the reboot may take", () => {
    const spec = { drain: { onTimeout: "Reboot" } };
    const after = (ms: number): string =>
      describePlan(passOf({ nodes: "a R/S Draining fresh cordoned", spec, now: NOW + ms }));
    assert.equal(after(3_600_000), "slots a Draining");
    assert.match(after(4_500_000), /DrainTimeout/);
  });
});

table(
  "a node that loses its label",
  `
  is sent back while it stages | a S/I Staging fresh unmanaged
    | wants a I; slots a Staging ends NoLongerManaged; deferred a NoLongerManaged 1
  is sent back while it is drained | a R/S Draining fresh unmanaged cordoned
    | wants a I; slots a Draining ends NoLongerManaged; deferred a NoLongerManaged 1
  is left alone while it reboots | a R/S Rebooting fresh unmanaged cordoned announced | slots a Rebooting
  is left alone while it comes back and is not Ready
    | a R/S Rebooting fresh unmanaged cordoned newboot notready announced | slots a Rebooting
  is sent back once it has rebooted: nobody else would uncordon it
    | a R/S Rebooting fresh unmanaged cordoned newboot announced
    | wants a I; slots a Rebooting ends NoLongerManaged; deferred a NoLongerManaged 1
  is sent back once it has returned | a M/R Returning fresh unmanaged newboot
    | wants a I; slots a Returning ends NoLongerManaged; deferred a NoLongerManaged 1
  leaves its slot at once when it serves again: its agent is gone with the label | a I/S Recovering fresh unmanaged
    | deferred a NoLongerManaged 0; skips a NotManaged
  keeps its slot while it is not Ready | a I/S Recovering fresh unmanaged notready | slots a Recovering
  keeps its slot while our cordon is on it | a I/S Recovering fresh unmanaged cordoned | slots a Recovering
  keeps its slot while its agent can report | a I/S Recovering fresh | slots a Recovering
  keeps its slot while a reboot is announced | a I/S Recovering fresh unmanaged announced | slots a Recovering
  leaves its slot in the boot after the announced one | a I/S Recovering fresh unmanaged newboot announced
    | deferred a NoLongerManaged 0; skips a NotManaged
  leaves its slot when it serves again, though its shadow is gone, too | a noshadow Recovering fresh unmanaged
    | deferred a NoLongerManaged 0; skips a NotManaged
  keeps its slot without a shadow while our cordon is on it | a noshadow Recovering fresh unmanaged cordoned
    | slots a Recovering
  keeps its slot without a shadow while it is not Ready | a noshadow Recovering fresh unmanaged notready
    | slots a Recovering
`,
);

describe("a drain that does not end in time", () => {
  const blocked = [
    { namespace: "shop", name: "db-0", reason: "DisruptionBudget", message: "db allows no disruption" },
    { namespace: "shop", name: "web", reason: "Terminating" },
  ];
  const drain = { started_at: at(0), round_at: at(0), remaining: 3, blocked };
  const stuck = busyNode("a", "RebootedIntoUpdate", "StagedAndPerformedUpdate", {
    node: { cordonedBy: "shadow-a" },
    status: { drain },
  });
  const active = [entry("a", { phase: "Draining", since: at(-3_700_000), waitsFor: "its agent" })];
  const first = planOf([stuck], { policy: policy({}, { active }) });
  const message =
    "a was in phase Draining for 1h: 3 pods are left, shop/db-0 (DisruptionBudget: db allows no disruption), shop/web (Terminating)";

  it("names the pods that are left, and what keeps each", () =>
    assert.deepEqual(first.status.active[0]?.ending, { reason: "DrainTimeout", message }));

  it("counts once, and is written once, however often its shadow cannot be written", () => {
    const again = planOf([stuck], { now: NOW + 5000, policy: policy({}, first.status) });
    assert.deepEqual([again.status, describePlan(again)], [first.status, describePlan(first)]);
  });

  for (const [title, nodes, expected] of [
    [
      "ends as that, once the node is back in service, and not as a failed update",
      "a leftover",
      "deferred a DrainTimeout 1; skips a Deferred",
    ],
    [
      "keeps its first reason if another one comes while it is undone",
      "a R/E cordoned",
      "wants a I; slots a Recovering ends DrainTimeout; deferred a DrainTimeout 1",
    ],
  ] as const)
    it(title, () => {
      const plan = passOf({ nodes, status: first.status });
      assert.equal(describePlan(plan), expected);
      const [said] = plan.status.deferred;
      assert.equal(said?.message, message.slice(0, 200));
    });
});

it("an active node remembers whose pods are drained", () => {
  const workloads = [{ kind: "StatefulSet", namespace: "shop", name: "db", uid: "u", ready: 3 }];
  const staged = busyNode("a", "StagedAndPerformedUpdate", "StagedAndPerformedUpdate");
  const held = policy({}, { active: [entry("a", { phase: "Holding" })] });
  const { status } = planOf([staged], { policy: held, readings: new Map([["a", { workloads }]]) });
  assert.deepEqual(status.active[0]?.workloads, workloads);
});

it("a pass after one that has changed nothing changes nothing", () => {
  const first = passOf({ nodes: "a updated" });
  assert.deepEqual(passOf({ nodes: "a updated", status: first.status, now: NOW + 60_000 }).status, first.status);
});
