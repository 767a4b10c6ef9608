import { recordedAndServed } from "./recorded-and-served.ts";

/** One of each kind. `recordings.long.test.ts` has the others. */
const recordings = [
  "04-deploy-failure-then-recovery",
  "09-error-responses",
  "10-status-check-port-forward-sync-app-logs",
  "20-old-v1.39.18",
  "22-skaffold-build-fails",
  "24-dev-concurrent-builds",
  "25-dev-test-fails",
  "26-dev-sync-fails",
  "29-skaffold-exec-fails",
];

for (const recording of recordings) recordedAndServed(recording);
