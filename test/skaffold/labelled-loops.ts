/** A dev loop as a person reads it from a recording's messages. Phases that are not named took 0 ms. */
export type LabelledLoop = {
  readonly outcome: "succeeded" | "failed" | "unknown";
  /** Whole milliseconds that were waited for each phase; they add up to the loop. Absent: its end was not recorded. */
  readonly waited?: Partial<Record<"sync" | "build" | "render" | "deploy" | "check" | "other", number>>;
  /** What failed first: phase, artifact, error code. */
  readonly cause?: readonly [phase: string, subject: string, code: string];
  readonly overtaken?: true;
};

/** From the end of a failed loop to that of the next good one, by their numbers; no good one and no time while red. */
export type LabelledRed = { readonly failed: number; readonly green?: number; readonly redMs?: number };

export type LabelledRecording = { readonly loops: readonly LabelledLoop[]; readonly red: readonly LabelledRed[] };

const ready = (waited: NonNullable<LabelledLoop["waited"]>): LabelledLoop => ({ outcome: "succeeded", waited });
const failed = (
  cause: NonNullable<LabelledLoop["cause"]>,
  waited: NonNullable<LabelledLoop["waited"]>,
): LabelledLoop => ({
  ...{ outcome: "failed", cause, waited },
});
const noDevLoop: LabelledRecording = { loops: [], red: [] };

/**
 * Worked out by hand. Each message of v1, and those of v2 about the task Render, was written down with its whole milliseconds since
 * the loop's "In Progress"; a phase is the difference between its two messages. A status check runs inside its deploy, whose
 * time is the rest. Builds follow each other here, so all of them count. What is left of the loop is "other".
 */
export const labelledLoops: Readonly<Record<string, LabelledRecording>> = {
  "01-dev-success-3-artifacts-5-iterations": {
    loops: [
      ready({ build: 114, render: 2, deploy: 58, other: 3 }),
      ready({ build: 53, render: 2, deploy: 65, other: 2 }),
      ready({ build: 104, render: 2, deploy: 68, other: 3 }),
      // Only a manifest was edited.
      ready({ render: 1, deploy: 61 }),
      ready({ build: 53, render: 2, deploy: 81, other: 5 }),
    ],
    red: [],
  },
  "03-first-build-fails-process-exits": {
    // The builds of web and api fail, too, because Skaffold ends them.
    loops: [failed(["build", "worker", "BUILD_UNKNOWN"], { build: 447, other: 3 })],
    red: [{ failed: 1 }],
  },
  "04-deploy-failure-then-recovery": {
    loops: [
      ready({ build: 150, render: 1, deploy: 68, other: 5 }),
      failed(["deploy", "", "DEPLOY_KUBECTL_USER_ERR"], { build: 41, render: 1, deploy: 60, other: 4 }),
      ready({ build: 53, render: 2, deploy: 76, other: 1 }),
      // The manifest is not YAML: nothing but rendering says so.
      failed(["render", "", "UNKNOWN_ERROR"], {}),
    ],
    red: [{ failed: 2, green: 3, redMs: 1_859 }, { failed: 4 }],
  },
  "05-control-api-auto-off": {
    loops: [
      ready({ build: 157, render: 5, deploy: 78, other: 4 }),
      ready({ build: 55, other: 3 }),
      ready({ render: 1, deploy: 74, other: 1 }),
      // Build and deploy were requested in one call: the deploy waits for the end of this loop.
      { ...ready({ build: 60, other: 2 }), overtaken: true },
      ready({ render: 1, deploy: 72 }),
      ready({ build: 43, render: 5, deploy: 71, other: 4 }),
      ready({ build: 41, other: 1 }),
      ready({ render: 1, deploy: 87 }),
      ready({ build: 36, render: 2, deploy: 59, other: 1 }),
    ],
    red: [],
  },
  "10-status-check-port-forward-sync-app-logs": {
    loops: [
      ready({ build: 130, render: 2, deploy: 64, check: 3_078, other: 1_016 }),
      ready({ sync: 39 }),
      // Four tries, and the pauses between them.
      failed(["sync", "web", "SYNC_UNKNOWN"], { sync: 147, other: 1_918 }),
      ready({ build: 42, render: 1, deploy: 61, check: 3_046, other: 1_010 }),
      // The deploy failed because its check did.
      failed(["check", "", "STATUSCHECK_UNKNOWN"], { build: 51, render: 5, deploy: 58, check: 1_058, other: 3 }),
      ready({ build: 57, render: 1, deploy: 84, check: 3_050, other: 1_006 }),
    ],
    red: [
      { failed: 3, green: 4, redMs: 7_728 },
      { failed: 5, green: 6, redMs: 6_734 },
    ],
  },
  "10b-first-status-check-times-out": {
    loops: [
      failed(["check", "", "STATUSCHECK_DEADLINE_EXCEEDED"], {
        ...{ build: 169, render: 2, deploy: 71, check: 21_007, other: 3 },
      }),
    ],
    red: [{ failed: 1 }],
  },
  "12-skaffold-build-one-shot": noDevLoop,
  "12b-skaffold-run-one-shot": noDevLoop,
  "17-invalid-utf8-in-build-output": {
    loops: [
      ready({ build: 153, render: 2, deploy: 73, other: 4 }),
      // The stream of v2, which tells of rendering, had broken.
      ready({ build: 56, deploy: 86, other: 3 }),
      ready({ build: 47, deploy: 63, other: 3 }),
      { outcome: "unknown" },
    ],
    red: [],
  },
  "20-old-v1.39.18": {
    loops: [
      ready({ build: 156, deploy: 136, other: 3 }),
      ready({ build: 54, deploy: 114, other: 2 }),
      failed(["build", "api", "BUILD_UNKNOWN"], { build: 38, other: 1 }),
      ready({ build: 53, deploy: 107, other: 3 }),
    ],
    red: [{ failed: 3, green: 4, redMs: 1_892 }],
  },
};
