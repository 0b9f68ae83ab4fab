/** A pod that was allowed to go a moment ago (§5.8). */
import { judgeEach, ZONES_MET } from "./table.ts";

const moment = (whom: string): string =>
  `ingester-zone-a-0 was allowed to go a moment ago, for ${whom}; try again once it is gone`;
const AGAIN = { pod: "zone-a-0", reserved: ["zone-a-0"] } as const;

judgeEach("a pod that is reserved already", [
  ["an eviction of a UID that another eviction has reserved: both are the same disruption", AGAIN, 200, ZONES_MET],
  ["an eviction without a UID may reach the successor", { ...AGAIN, unpinned: true }, 429, moment("an eviction")],
  [
    "an eviction with a UID after one without: the first may reach the successor",
    { ...AGAIN, reservedFor: "unpinned eviction" },
    429,
    moment("an eviction"),
  ],
  [
    "for 15 seconds: until then the API server may retry",
    { ...AGAIN, unpinned: true, reservedMs: 14_999 },
    429,
    moment("an eviction"),
  ],
  ["then it is judged like any other", { ...AGAIN, unpinned: true, reservedMs: 15_000 }, 200, ZONES_MET],
  ["the first eviction without a UID is judged like any other", { pod: "zone-a-0", unpinned: true }, 200, ZONES_MET],
  ["the rollout does not touch a pod that is being evicted", { ...AGAIN, rollout: 1 }, 429, moment("an eviction")],
  [
    "an eviction does not touch a pod that the rollout replaces",
    { ...AGAIN, reservedFor: "rollout" },
    429,
    moment("the rollout"),
  ],
  [
    "an eviction without a UID not even later: the rollout may delete the pod at any time, and the eviction then reach its successor",
    { ...AGAIN, unpinned: true, reservedFor: "rollout", reservedMs: 119_000 },
    429,
    moment("the rollout"),
  ],
  ["an eviction with a UID may, later", { ...AGAIN, reservedFor: "rollout", reservedMs: 15_000 }, 200, ZONES_MET],
  [
    "the rollout takes over another rollout's reservation",
    { ...AGAIN, reservedFor: "rollout", rollout: 1 },
    200,
    ZONES_MET,
  ],
]);
