/** What to try once the demonstration is over: the README has the same lines, and a test plays them. */
export const NEXT_COMMANDS: readonly string[] = [
  "kubectl annotate pod ingester-zone-b-1 sim/crash=true      # a pod of zone b breaks",
  "kubectl rollout undo statefulset ingester-zone-a           # zone a has a new template, and waits for zone b",
  "npx --no -- zonewise explain ingester                      # why, and the fix",
  "kubectl delete pod ingester-zone-b-1                       # its successor becomes ready: the rollout continues",
  "npx --no -- zonewise status ingester --timeout 5m          # ends when all zones are updated and ready",
];
