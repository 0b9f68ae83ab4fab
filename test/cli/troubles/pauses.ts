/** The reconciler does not tick, or people hold what it would do. */
import type { KubeObject } from "../../emulator/objects.ts";
import { writeLease } from "../stage.ts";
import { annotate, create, remove, setSpec, setTemplate, ZONES } from "./changes.ts";
import { CRON_JOB, CRON_JOBS, NAMESPACE, type Installation } from "./installation.ts";
import { applyFolder } from "./kubectl.ts";
import type { Trouble } from "./trouble.ts";

const OF_RUNS = { "app.kubernetes.io/name": CRON_JOB };
const RUN = `${CRON_JOB}-1`;
const PAUSED = "grafana.com/rollout-paused";
const WINDOW = "zonewise.dev/rollout-window";

/** The window that is always open. */
const setWindow = (object: KubeObject): object => ({
  ...object,
  metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, [WINDOW]: "* * * * * *" } },
});

/** A Job of the CronJob, and its pod. */
function createRun(at: Installation, { job, pod }: { readonly job: object; readonly pod: object }): void {
  create(at, "jobs.batch", "Job", { metadata: { name: RUN, labels: OF_RUNS }, status: job });
  const labels = { ...OF_RUNS, "batch.kubernetes.io/job-name": RUN };
  create(at, "pods", "Pod", {
    metadata: { name: `${RUN}-x`, labels },
    spec: { containers: [] },
    status: pod,
  });
}

export const PAUSE_TROUBLES: readonly Trouble[] = [
  {
    trouble: "a suspended CronJob",
    make: (at) => setSpec(at, CRON_JOBS, CRON_JOB, ["suspend"], true),
    seenAfter: 270,
    says: {
      status: /^warning {2}the reconciler has not run since .*is suspended/,
      explain: /^warning {2}the reconciler has not run since .*is suspended/,
      doctor: /^error {2}reconciler: the reconciler has not run since .*is suspended/,
      page: /The reconciler does not run\. As recorded: 1 Ready .*is suspended/,
    },
    cure: { by: "doctor" },
  },
  {
    trouble: "a CronJob whose Jobs fail",
    make: (at) => {
      at.runs = false;
      const message = `{"level":"error","msg":"RECONCILE_INTERVAL is not a duration"}\n`;
      createRun(at, {
        job: { conditions: [{ type: "Failed", status: "True", reason: "PodFailurePolicy", message: "failed" }] },
        pod: {
          phase: "Failed",
          containerStatuses: [{ ready: false, state: { terminated: { exitCode: 2, reason: "Error", message } } }],
        },
      });
    },
    seenAfter: 270,
    says: {
      status:
        /the reconciler has not run since .*Job zonewise-reconciler-1 has failed: exit code 2, RECONCILE_INTERVAL is not a duration/,
      doctor: /the reconciler has not run since .*exit code 2, RECONCILE_INTERVAL is not a duration/,
      page: /RECONCILE_INTERVAL is not a duration/,
    },
    cure: {
      by: "doctor",
      text: /kubectl -n default logs job\/zonewise-reconciler-1/,
      does: (at) => void (at.runs = true),
    },
  },
  {
    trouble: "a run that holds the Lease and ends no tick",
    make: (at) => {
      at.runs = false;
      createRun(at, { job: { active: 1 }, pod: { phase: "Running" } });
      const { store } = at.stage.emulator;
      const startedAt = at.stage.clock.now();
      // Until its pod is gone.
      const renew = (): void => {
        if (!store.get("pods", NAMESPACE, `${RUN}-x`)) return void (at.runs = true);
        const age = at.stage.clock.now() - startedAt;
        writeLease(at.stage, { holder: `${RUN}-x_1`, heldMs: age, tickedMs: age });
        at.stage.time.after(5000, renew);
      };
      renew();
    },
    seenAfter: 310,
    says: {
      status: /the reconciler has not run since .*is held by zonewise-reconciler-1-x_1 since/,
      doctor: /the reconciler has not run since .*is held by zonewise-reconciler-1-x_1 since/,
      page: /is held by zonewise-reconciler-1-x_1/,
    },
    cure: { by: "doctor", takes: /delete/ },
    curedAfter: 40,
  },
  {
    trouble: "a group that somebody has paused",
    make: (at) => {
      for (const zone of ZONES) annotate(at, "statefulsets.apps", zone, { [PAUSED]: "true" });
      setTemplate(at, "app:2");
    },
    says: { status: /ZonePaused/, explain: /roll out: Paused {2}ZonePaused/, page: /ZonePaused/ },
    event: /^ZonePaused /m,
    cure: {},
    curedAfter: 90,
  },
  {
    trouble: "a group that was left paused after its rollout",
    make: (at) => {
      for (const zone of ZONES) annotate(at, "statefulsets.apps", zone, { [PAUSED]: "true" });
    },
    says: { doctor: /warning {2}group\/ingester: all its zones are paused/ },
    cure: { by: "doctor" },
  },
  {
    trouble: "one zone that somebody has paused",
    make: (at) => {
      annotate(at, "statefulsets.apps", "ingester-zone-b", { [PAUSED]: "true" });
      setTemplate(at, "app:2");
    },
    seenAfter: 45,
    says: { status: /ZonePaused/, explain: /roll out: Paused {2}ZonePaused\n.*ingester-zone-b/ },
    event: /^ZonePaused /m,
    cure: {},
    curedAfter: 60,
  },
  {
    trouble: "a group that waits for its rollout window",
    make: (at) => {
      const window = { [WINDOW]: "0 0 0 1 1 * 2033", [`${WINDOW}-duration`]: "1h", [`${WINDOW}-time-zone`]: "UTC" };
      for (const zone of ZONES) annotate(at, "statefulsets.apps", zone, window);
      setTemplate(at, "app:2");
    },
    says: {
      status: /WindowClosed/,
      explain: /roll out: Waiting {2}WindowClosed\n.*opens at 2033-01-01T00:00:00Z/,
      page: /WindowClosed/,
    },
    event: /^WindowClosed /m,
    object: "statefulset/ingester-zone-a",
    cure: {},
    curedAfter: 90,
  },
  {
    trouble: "a rollout window that never opens",
    make: (at) => {
      for (const zone of ZONES)
        annotate(at, "statefulsets.apps", zone, { [WINDOW]: zone === ZONES[0] ? "* * 2 31 2 *" : "* * * * * *" });
    },
    says: {
      doctor:
        /error {2}statefulset\/ingester-zone-a: window \* \* 2 31 2 \* \(UTC\) does not open in the next 10 years/,
    },
    cure: { by: "doctor", edit: setWindow },
  },
  {
    trouble: "a rollout window that cannot be read",
    make: (at) => {
      for (const zone of ZONES)
        annotate(at, "statefulsets.apps", zone, { [WINDOW]: zone === ZONES[0] ? "0 2 * * *" : "* * * * * *" });
      setTemplate(at, "app:2");
    },
    says: {
      status: /WindowInvalid/,
      explain: /roll out: Blocked {2}WindowInvalid\n.*it has 5 fields/,
      doctor: /error {2}statefulset\/ingester-zone-a: annotation zonewise.dev\/rollout-window is "0 2 \* \* \*"/,
    },
    event: /^WindowInvalid /m,
    cure: { edit: setWindow },
    curedAfter: 90,
  },
  {
    trouble: "a removed reconciler, whose RolloutGroup still says Ready",
    make: (at) => remove(at, CRON_JOBS, CRON_JOB),
    seenAfter: 270,
    says: {
      status: /Ready \(old\)/,
      doctor: /there is no CronJob default\/zonewise-reconciler/,
      page: /The reconciler does not run\. As recorded: 1 Ready/,
    },
    cure: {
      by: "doctor",
      text: /kubectl -n default get cronjobs,jobs,pods -l app.kubernetes.io\/name=zonewise-reconciler/,
      does: ({ stage }) => applyFolder(stage, "infra/manifests/reconciler", NAMESPACE),
    },
  },
];
