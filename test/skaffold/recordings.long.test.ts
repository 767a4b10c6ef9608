import { recordedAndServed } from "./recorded-and-served.ts";

/**
 * Together with those of `recordings.test.ts`: every recording that is one process from its start (15-* and 16 are
 * experiments on the server).
 */
const recordings = [
  "01-dev-success-3-artifacts-5-iterations",
  "03-first-build-fails-process-exits",
  "04b-first-deploy-fails-process-exits",
  "05-control-api-auto-off",
  "07-two-processes-same-port/process-a",
  "07-two-processes-same-port/process-b",
  "08-handle-custom-events",
  "08b-handle-crash-v1-devloop-failed-without-err",
  "08c-handle-crash-v2-status-check-after-auto-toggle",
  "10b-first-status-check-times-out",
  "12-skaffold-build-one-shot",
  "12b-skaffold-run-one-shot",
  "12c-wait-for-connection",
  "14-config-error-wait-for-connection",
  "17-invalid-utf8-in-build-output",
  "21-old-v0.40.0",
  "23-skaffold-run-deploy-fails",
  "24b-dev-two-builds-at-a-time",
  "27-dev-build-fails-beside-others",
  "28-skaffold-verify-fails",
  "30-skaffold-verify-image-not-pulled",
  "31-dev-compilers-and-tests-fail",
];

for (const recording of recordings) recordedAndServed(recording);
