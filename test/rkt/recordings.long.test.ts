import { recordedAndServed, type Scenario } from "./recorded-and-served.ts";

/** The recordings that `recordings.test.ts` omits. */
const recordings: Readonly<Record<string, Scenario>> = {
  "02-fast-and-skipped-states": { compared: { ListPods: 12, InspectPod: 11, ListImages: 1 } },
  "03-prepare-aborted": { compared: { ListPods: 7, InspectPod: 3, ListImages: 2 } },
  "05-app-exit-codes": { compared: { ListPods: 11, InspectPod: 12, ListImages: 3 }, runs: 10 },
  // Nothing was done to the host while it was polled.
  "06-filters": { compared: { ListPods: 38, InspectPod: 7, ListImages: 25, InspectImage: 1 }, events: [] },
  "10-blocking-start": {
    compared: { ListPods: 5, InspectPod: 2, ListImages: 1 },
    timeout: "3s",
    gaps: ["something of pods may be missing: the pods could not be listed: no answer within 3000 ms"],
    events: [
      // A was prepared at :48.41, and its pid file came with the fourth poll; it exited before the fifth.
      "POD_PREPARED dbec-22d7 created_at 1795188528 inferred=true",
      "POD_STARTED dbec-22d7 started_at 1795188530",
      "APP_STARTED dbec-22d7/worker started_at 1795188530",
      "APP_EXITED dbec-22d7/worker look 5 exit_code=0",
      "POD_EXITED dbec-22d7 look 5",
      // B died before its pid file. C came after the last poll.
      "POD_PREPARED ed27-ed3f created_at 1795188532 inferred=true",
      "POD_EXITED ed27-ed3f look 7 started=false",
    ],
  },
  // The worker was removed and fetched again three times between polls, or missing in one; then it was removed for
  // good.
  "11-image-cache": {
    compared: { ListImages: 7 },
    events: [
      "IMAGE_IMPORTED sim.example/stage1 import_timestamp 1795188538 version=0.2.0",
      "IMAGE_IMPORTED sim.example/tools/sidecar import_timestamp 1795188540 version=latest",
      "IMAGE_REMOVED sim.example/worker look 8 version=1.2.0",
    ],
  },
  // No preparation was ever aborted.
  "14-false-aborted-prepare": {
    compared: { ListPods: 4 },
    events: [
      "POD_PREPARED 77e8-f428 created_at 1795188590",
      "POD_PREPARED 34ef-5236 created_at 1795188591 inferred=true",
      "POD_STARTED 34ef-5236 started_at 1795188591 inferred=true",
      "APP_STARTED 34ef-5236/batch started_at 1795188591 inferred=true",
      "APP_EXITED 34ef-5236/batch look 5 exit_code=4",
      "POD_EXITED 34ef-5236 look 5",
    ],
  },
};

for (const [name, scenario] of Object.entries(recordings)) recordedAndServed(name, scenario);
