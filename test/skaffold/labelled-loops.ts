/** A dev loop as a person reads it from a recording's messages. Unnamed phases took 0 ms. */
export type LabelledLoop = {
  readonly outcome: "succeeded" | "failed" | "unknown";
  /** Whole milliseconds spent waiting for each phase; they add up to the loop. Absent: its end was not recorded. */
  readonly waited?: Partial<Record<"sync" | "build" | "test" | "render" | "deploy" | "check" | "other", number>>;
  /** The first failure: phase, artifact, error code. */
  readonly cause?: readonly [phase: string, subject: string, code: string];
  readonly overtaken?: true;
};

/**
 * From the end of a failed loop to that of the next good one, by their numbers; `green` and `redMs` are absent while
 * red.
 */
export type LabelledRed = { readonly failed: number; readonly green?: number; readonly redMs?: number };

/** All builds of an artifact that were not canceled: each one's whole milliseconds, in order. */
export type LabelledArtifact = {
  readonly builtMs: readonly number[];
  /** How many of them failed, and how many of these failures the next build did not repeat. */
  readonly failed?: number;
  readonly flakes?: number;
  /** Absent: they are worked out from builtMs. */
  readonly percentiles?: { readonly p50: number; readonly p90: number };
};

export type LabelledRecording = {
  readonly loops: readonly LabelledLoop[];
  readonly red: readonly LabelledRed[];
  /** Failures outside of loops: phase, subject, error code. */
  readonly failedAlone?: readonly (readonly [phase: string, subject: string, code: string])[];
  /** Causes that no reason is known of: a person knows none either. */
  readonly unexplained?: readonly string[];
  /** By name; absent: nothing was built. */
  readonly artifacts?: Readonly<Record<string, LabelledArtifact>>;
};

const ready = (waited: NonNullable<LabelledLoop["waited"]>): LabelledLoop => ({ outcome: "succeeded", waited });
const failed = (
  cause: NonNullable<LabelledLoop["cause"]>,
  waited: NonNullable<LabelledLoop["waited"]>,
): LabelledLoop => ({
  outcome: "failed",
  cause,
  waited,
});
const noDevLoop: LabelledRecording = { loops: [], red: [] };

/**
 * Every recording has an entry. Worked out by hand. Each message of v1, and those of v2 about the task Render, was
 * written down with its whole milliseconds since the loop's "In Progress"; a phase is the difference between its two
 * messages. A status check runs inside its deploy, whose time is the rest. Builds are sequential, so all of them
 * count; in 24 they run beside each other, and count from the first one's start to the last one's end. The rest of the loop is "other". The loops of 15-* are all alike, and without v2 no message reports rendering:
 * a script whose only input was that list did the subtractions for them, and for the builds of artifacts.
 * What a loop waited for at each moment stands in `labelled-waits.ts`.
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
    artifacts: {
      web: { builtMs: [37, 53, 52], percentiles: { p50: 52, p90: 52.8 } },
      api: { builtMs: [36, 47], percentiles: { p50: 41.5, p90: 45.9 } },
      worker: { builtMs: [39, 56], percentiles: { p50: 47.5, p90: 54.3 } },
    },
  },
  "03-first-build-fails-process-exits": {
    // Skaffold ends the builds of web and api, which are canceled by that.
    loops: [failed(["build", "worker", "BUILD_UNKNOWN"], { build: 447, other: 3 })],
    red: [{ failed: 1 }],
    artifacts: {
      worker: { builtMs: [446], failed: 1 },
    },
  },
  "04-deploy-failure-then-recovery": {
    loops: [
      ready({ build: 150, render: 1, deploy: 68, other: 5 }),
      failed(["deploy", "", "DEPLOY_KUBECTL_USER_ERR"], { build: 41, render: 1, deploy: 60, other: 4 }),
      ready({ build: 53, render: 2, deploy: 76, other: 1 }),
      // The manifest is not YAML: only rendering reports it.
      failed(["render", "", "UNKNOWN_ERROR"], {}),
    ],
    red: [{ failed: 2, green: 3, redMs: 1_859 }, { failed: 4 }],
    artifacts: { worker: { builtMs: [47] }, api: { builtMs: [53] }, web: { builtMs: [49, 41, 52] } },
  },
  "04b-first-deploy-fails-process-exits": {
    loops: [failed(["deploy", "", "DEPLOY_KUBECTL_USER_ERR"], { build: 126, render: 1, deploy: 57, other: 2 })],
    red: [{ failed: 1 }],
    artifacts: { worker: { builtMs: [44] }, web: { builtMs: [41] }, api: { builtMs: [39] } },
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
    artifacts: { worker: { builtMs: [43] }, web: { builtMs: [57, 55, 36] }, api: { builtMs: [55, 59, 43, 41] } },
  },
  "07-two-processes-same-port/process-a": {
    loops: [
      ready({ build: 135, render: 2, deploy: 73, other: 4 }),
      ready({ build: 48, render: 2, deploy: 88, other: 3 }),
    ],
    red: [],
    artifacts: { worker: { builtMs: [45] }, web: { builtMs: [44, 48] }, api: { builtMs: [44] } },
  },
  "07-two-processes-same-port/process-b": {
    loops: [
      ready({ render: 1, deploy: 78, other: 11 }),
      ready({ build: 55, render: 3, deploy: 87, other: 1 }),
      ready({ render: 1, deploy: 72, other: 3 }),
    ],
    red: [],
    artifacts: { api: { builtMs: [54] } },
  },
  // Its port was taken: it printed only to its console, and ended.
  "07-two-processes-same-port/process-c-collides-while-a-runs": noDevLoop,
  "08-handle-custom-events": {
    loops: [
      ready({ build: 109, render: 2, deploy: 60, other: 5 }),
      ready({ build: 41, render: 1, deploy: 62, other: 2 }),
    ],
    red: [],
    artifacts: { worker: { builtMs: [37] }, web: { builtMs: [35, 40] }, api: { builtMs: [35] } },
  },
  "08b-handle-crash-v1-devloop-failed-without-err": {
    loops: [ready({ build: 135, render: 1, deploy: 70, other: 7 })],
    red: [],
    artifacts: { worker: { builtMs: [52] }, api: { builtMs: [39] }, web: { builtMs: [43] } },
  },
  "08c-handle-crash-v2-status-check-after-auto-toggle": {
    loops: [ready({ build: 120, render: 1, deploy: 89, other: 6 })],
    red: [],
    artifacts: { worker: { builtMs: [42] }, web: { builtMs: [39] }, api: { builtMs: [38] } },
  },
  "09-error-responses": {
    loops: [ready({ build: 123, render: 4, deploy: 84, other: 5 })],
    red: [],
    artifacts: { worker: { builtMs: [42] }, web: { builtMs: [41] }, api: { builtMs: [39] } },
  },
  "10-status-check-port-forward-sync-app-logs": {
    loops: [
      ready({ build: 130, render: 2, deploy: 64, check: 3_078, other: 1_016 }),
      ready({ sync: 39 }),
      // Four tries, and the pauses between them.
      failed(["sync", "web", "SYNC_UNKNOWN"], { sync: 2_065 }),
      ready({ build: 42, render: 1, deploy: 61, check: 3_046, other: 1_010 }),
      // The deploy failed because its check did.
      failed(["check", "", "STATUSCHECK_UNKNOWN"], { build: 51, render: 5, deploy: 58, check: 1_058, other: 3 }),
      ready({ build: 57, render: 1, deploy: 84, check: 3_050, other: 1_006 }),
    ],
    red: [
      { failed: 3, green: 4, redMs: 7_728 },
      { failed: 5, green: 6, redMs: 6_734 },
    ],
    artifacts: { worker: { builtMs: [45] }, web: { builtMs: [43, 41] }, api: { builtMs: [41, 51, 56] } },
  },
  "10b-first-status-check-times-out": {
    loops: [
      failed(["check", "", "STATUSCHECK_DEADLINE_EXCEEDED"], {
        build: 169,
        render: 2,
        deploy: 71,
        check: 21_007,
        other: 3,
      }),
    ],
    red: [{ failed: 1 }],
    artifacts: { worker: { builtMs: [70] }, web: { builtMs: [41] }, api: { builtMs: [56] } },
  },
  "12-skaffold-build-one-shot": {
    ...noDevLoop,
    artifacts: { worker: { builtMs: [49] }, api: { builtMs: [42] }, web: { builtMs: [41] } },
  },
  "12b-skaffold-run-one-shot": {
    ...noDevLoop,
    artifacts: { worker: { builtMs: [60] }, web: { builtMs: [56] }, api: { builtMs: [40] } },
  },
  // `skaffold build`, like 12.
  "12c-wait-for-connection": {
    ...noDevLoop,
    artifacts: { worker: { builtMs: [46] }, web: { builtMs: [39] }, api: { builtMs: [41] } },
  },
  // The configuration could not be read, so there was nothing to loop over.
  "14-config-error-wait-for-connection": noDevLoop,
  "15-disconnect-after-replay-is-safe": {
    loops: [
      ready({ build: 222, deploy: 129, other: 4 }),
      ready({ build: 75, deploy: 148, other: 4 }),
      ready({ build: 68, deploy: 124, other: 3 }),
    ],
    red: [],
    artifacts: { worker: { builtMs: [72] }, web: { builtMs: [70] }, api: { builtMs: [78, 74, 67] } },
  },
  "15-drops-curl": {
    loops: [
      ready({ build: 218, deploy: 129, other: 3 }),
      ready({ build: 162, deploy: 132, other: 2 }),
      ready({ build: 162, deploy: 118, other: 2 }),
      ready({ build: 182, deploy: 121, other: 1 }),
      failed(["deploy", "", "DEPLOY_ERR_WAITING_FOR_DELETION"], { build: 197, deploy: 4, other: 3 }),
    ],
    red: [{ failed: 5 }],
    artifacts: { worker: { builtMs: [72, 161, 162, 182, 197] }, web: { builtMs: [70] }, api: { builtMs: [74] } },
  },
  "15-drops-grpc-idle": {
    loops: [
      ready({ build: 232, deploy: 140, other: 9 }),
      ready({ build: 74, deploy: 131, other: 5 }),
      ready({ build: 88, deploy: 130, other: 7 }),
      ready({ build: 86, deploy: 131, other: 6 }),
      ready({ build: 71, deploy: 142, other: 3 }),
      ready({ build: 68, deploy: 142, other: 4 }),
      ready({ build: 76, deploy: 128, other: 9 }),
      ready({ build: 83, deploy: 161, other: 8 }),
      ready({ build: 78, deploy: 127, other: 7 }),
      ready({ build: 70, deploy: 120, other: 9 }),
      ready({ build: 74, deploy: 128, other: 6 }),
      ready({ build: 78, deploy: 153, other: 9 }),
      ready({ build: 72, deploy: 130, other: 10 }),
      ready({ build: 78, deploy: 160, other: 10 }),
    ],
    red: [],
    artifacts: {
      worker: { builtMs: [70, 74, 87, 85, 71, 67, 75, 83, 77, 70, 74, 78, 71] },
      web: { builtMs: [72] },
      api: { builtMs: [89, 78] },
    },
  },
  "15-drops-grpc-live": {
    loops: [
      ready({ build: 219, deploy: 116, other: 4 }),
      ready({ build: 117, deploy: 136, other: 4 }),
      ready({ build: 92, deploy: 115, other: 3 }),
      ready({ build: 106, deploy: 121, other: 5 }),
      ready({ build: 119, deploy: 116, other: 4 }),
      ready({ build: 104, deploy: 129, other: 5 }),
      ready({ build: 106, deploy: 158, other: 7 }),
      ready({ build: 98, deploy: 160, other: 5 }),
      ready({ build: 129, deploy: 139, other: 13 }),
      ready({ build: 127, deploy: 157, other: 7 }),
      ready({ build: 127, deploy: 167, other: 10 }),
      ready({ build: 164, deploy: 169, other: 9 }),
      ready({ build: 167, deploy: 174, other: 8 }),
      ready({ build: 181, deploy: 192, other: 11 }),
    ],
    red: [],
    artifacts: {
      worker: { builtMs: [86, 116, 91, 106, 119, 103, 106, 97, 129, 127, 126, 163, 166] },
      web: { builtMs: [64] },
      api: { builtMs: [68, 181] },
    },
  },
  "15-drops-http-idle": {
    loops: [
      ready({ build: 209, deploy: 125, other: 4 }),
      ready({ build: 69, deploy: 123, other: 3 }),
      ready({ build: 72, deploy: 122, other: 3 }),
      ready({ build: 85, deploy: 118, other: 3 }),
      ready({ build: 67, deploy: 125, other: 5 }),
      ready({ build: 72, deploy: 120, other: 5 }),
      ready({ build: 86, deploy: 129, other: 8 }),
      ready({ build: 78, deploy: 136, other: 10 }),
      ready({ build: 70, deploy: 144, other: 6 }),
      ready({ build: 96, deploy: 135, other: 9 }),
      ready({ build: 72, deploy: 129, other: 7 }),
      ready({ build: 70, deploy: 123, other: 7 }),
      ready({ build: 62, deploy: 112, other: 7 }),
      ready({ build: 67, deploy: 128, other: 6 }),
    ],
    red: [],
    artifacts: {
      worker: { builtMs: [70, 69, 71, 85, 67, 72, 86, 78, 69, 95, 72, 70, 62] },
      web: { builtMs: [70] },
      api: { builtMs: [67, 67] },
    },
  },
  "15-drops-http-live": {
    loops: [
      ready({ build: 233, deploy: 159, other: 5 }),
      failed(["build", "worker", "BUILD_UNKNOWN"], { build: 172, other: 3 }),
    ],
    red: [{ failed: 2 }],
    artifacts: { worker: { builtMs: [68, 172], failed: 1 }, web: { builtMs: [71] }, api: { builtMs: [93] } },
  },
  "15-hang-disconnect-during-replay": {
    loops: [
      ready({ build: 227, deploy: 135, other: 8 }),
      ready({ build: 166, deploy: 127, other: 6 }),
      ready({ build: 71, deploy: 122, other: 5 }),
      { outcome: "unknown" },
    ],
    red: [],
    artifacts: { worker: { builtMs: [81, 166] }, web: { builtMs: [73] }, api: { builtMs: [72, 71] } },
  },
  "15-hang-reader-stops-reading": {
    loops: [
      ready({ build: 339, deploy: 202, other: 10 }),
      ready({ build: 9045, deploy: 125, other: 6 }),
      ready({ build: 75, deploy: 130, other: 6 }),
    ],
    red: [],
    artifacts: { worker: { builtMs: [110, 9045] }, web: { builtMs: [110] }, api: { builtMs: [116, 75] } },
  },
  "15-http-disconnect-during-replay": {
    loops: [ready({ build: 242, deploy: 136, other: 8 }), ready({ build: 163, deploy: 131, other: 5 })],
    red: [],
    artifacts: { worker: { builtMs: [76, 162] }, web: { builtMs: [81] }, api: { builtMs: [84] } },
  },
  "15-joining-while-busy-grpc": {
    loops: [
      ready({ build: 194, deploy: 117, other: 5 }),
      ready({ build: 188, deploy: 131, other: 1 }),
      { outcome: "unknown" },
    ],
    red: [],
    artifacts: { worker: { builtMs: [65, 187] }, web: { builtMs: [62] }, api: { builtMs: [66] } },
  },
  "15-joining-while-busy-http": {
    loops: [
      ready({ build: 235, deploy: 149, other: 9 }),
      ready({ build: 264, deploy: 123, other: 3 }),
      { outcome: "unknown" },
    ],
    red: [],
    artifacts: { worker: { builtMs: [93, 264] }, web: { builtMs: [70] }, api: { builtMs: [70] } },
  },
  "15-joining-while-busy-one-each-grpc": {
    loops: [
      ready({ build: 193, deploy: 120, other: 4 }),
      ready({ build: 173, deploy: 124, other: 2 }),
      ready({ build: 189, deploy: 113, other: 2 }),
      ready({ build: 159, deploy: 113, other: 1 }),
      ready({ build: 157, deploy: 120, other: 1 }),
      ready({ build: 161, deploy: 123, other: 1 }),
      ready({ build: 162, deploy: 115, other: 2 }),
      ready({ build: 185, deploy: 116, other: 2 }),
      ready({ build: 227, deploy: 121, other: 1 }),
      { outcome: "unknown" },
    ],
    red: [],
    artifacts: {
      worker: { builtMs: [64, 172, 188, 159, 157, 160, 161, 184, 227] },
      web: { builtMs: [63] },
      api: { builtMs: [64] },
    },
  },
  "15-joining-while-busy-one-each-http": {
    loops: [
      ready({ build: 220, deploy: 129, other: 6 }),
      ready({ build: 187, deploy: 116, other: 1 }),
      ready({ build: 331, deploy: 152, other: 1 }),
      ready({ build: 253, deploy: 135, other: 2 }),
      ready({ build: 239, deploy: 121, other: 2 }),
      ready({ build: 289, deploy: 128, other: 2 }),
      ready({ build: 281, deploy: 123, other: 1 }),
      ready({ build: 355, deploy: 126, other: 1 }),
      ready({ build: 351, deploy: 130, other: 6 }),
      ready({ build: 354, deploy: 127, other: 4 }),
      ready({ build: 322, deploy: 115, other: 3 }),
      ready({ build: 337, deploy: 119, other: 2 }),
      ready({ build: 328, deploy: 123, other: 4 }),
    ],
    red: [],
    artifacts: {
      worker: { builtMs: [85, 186, 331, 252, 239, 288, 280, 354, 351, 354, 322, 336, 328] },
      web: { builtMs: [70] },
      api: { builtMs: [64] },
    },
  },
  "16-experiments": {
    loops: [ready({ build: 191, deploy: 112, other: 4 }), failed(["build", "worker", "BUILD_UNKNOWN"], { build: 114 })],
    red: [{ failed: 2 }],
    artifacts: { worker: { builtMs: [64, 113], failed: 1 }, web: { builtMs: [62] }, api: { builtMs: [64] } },
  },
  "17-invalid-utf8-in-build-output": {
    loops: [
      ready({ build: 153, render: 2, deploy: 73, other: 4 }),
      // The stream of v2, which reports rendering, had broken.
      ready({ build: 56, deploy: 86, other: 3 }),
      ready({ build: 47, deploy: 63, other: 3 }),
      { outcome: "unknown" },
    ],
    red: [],
    artifacts: { worker: { builtMs: [47, 55] }, api: { builtMs: [58, 46] }, web: { builtMs: [46] } },
  },
  "20-old-v1.39.18": {
    loops: [
      ready({ build: 156, deploy: 136, other: 3 }),
      ready({ build: 54, deploy: 114, other: 2 }),
      failed(["build", "api", "BUILD_UNKNOWN"], { build: 38, other: 1 }),
      ready({ build: 53, deploy: 107, other: 3 }),
    ],
    red: [{ failed: 3, green: 4, redMs: 1_892 }],
    unexplained: ["error: nope"],
    artifacts: {
      web: { builtMs: [46, 54], percentiles: { p50: 50, p90: 53.2 } },
      api: { builtMs: [52, 38, 52], failed: 1, flakes: 1, percentiles: { p50: 52, p90: 52 } },
      worker: { builtMs: [56], percentiles: { p50: 56, p90: 56 } },
    },
  },
  // `skaffold dev`, but v0.40.0 has no messages about loops: four rounds of builds and deploys stand alone.
  "21-old-v0.40.0": {
    ...noDevLoop,
    // This version has no error codes either.
    failedAlone: [["build", "api", ""]],
    artifacts: {
      web: { builtMs: [41, 44], percentiles: { p50: 42.5, p90: 43.7 } },
      api: { builtMs: [34, 44, 43], failed: 1, flakes: 1, percentiles: { p50: 43, p90: 43.8 } },
      worker: { builtMs: [40], percentiles: { p50: 40, p90: 40 } },
    },
  },
  "22-skaffold-build-fails": {
    ...noDevLoop,
    failedAlone: [["build", "api", "BUILD_UNKNOWN"]],
    artifacts: { worker: { builtMs: [83] }, web: { builtMs: [143] }, api: { builtMs: [84], failed: 1 } },
  },
  "23-skaffold-run-deploy-fails": {
    ...noDevLoop,
    failedAlone: [["deploy", "", "DEPLOY_KUBECTL_USER_ERR"]],
    artifacts: { worker: { builtMs: [76] }, web: { builtMs: [74] }, api: { builtMs: [73] } },
  },
  "24-dev-concurrent-builds": {
    loops: [
      ready({ build: 665, render: 4, deploy: 278, other: 15 }),
      ready({ build: 777, render: 2, deploy: 341, other: 13 }),
      // Skaffold kills the builds of api and web, which takes half a second.
      failed(["build", "worker", "BUILD_UNKNOWN"], { build: 1_230, other: 1 }),
      ready({ build: 432, render: 1, deploy: 361, other: 8 }),
    ],
    red: [{ failed: 3, green: 4, redMs: 3_026 }],
    artifacts: {
      worker: { builtMs: [506, 745, 432], failed: 1, flakes: 1 },
      // Killed because worker failed, and not built again.
      web: { builtMs: [665, 429] },
      api: { builtMs: [416, 777] },
    },
  },
  "24b-dev-two-builds-at-a-time": {
    loops: [
      ready({ build: 1_027, render: 2, deploy: 203, other: 5 }),
      ready({ build: 788, render: 1, deploy: 398, other: 6 }),
    ],
    red: [],
    artifacts: { worker: { builtMs: [393, 493] }, web: { builtMs: [846, 294] }, api: { builtMs: [633, 602] } },
  },
  "25-dev-test-fails": {
    loops: [
      ready({ build: 381, test: 15, render: 4, deploy: 446, other: 8 }),
      failed(["test", "", "TEST_CUSTOM_CMD_RUN_NON_ZERO_EXIT_ERR"], { build: 174, test: 13, other: 13 }),
      ready({ build: 393, test: 4, render: 5, deploy: 597, other: 7 }),
    ],
    red: [{ failed: 2, green: 3, redMs: 3_212 }],
    artifacts: { worker: { builtMs: [71] }, web: { builtMs: [152, 174, 393] }, api: { builtMs: [156] } },
  },
  "26-dev-sync-fails": {
    loops: [
      ready({ build: 2_625, render: 6, deploy: 1_123, other: 26 }),
      // Four tries, and the pauses between them; v1's last word on the loop is Succeeded.
      failed(["sync", "web", "SYNC_UNKNOWN"], { sync: 4_597 }),
      ready({ sync: 1_121, other: 1 }),
      // The second try worked.
      ready({ sync: 1_624 }),
    ],
    red: [{ failed: 2, green: 3, redMs: 5_570 }],
    artifacts: { worker: { builtMs: [713] }, web: { builtMs: [787] }, api: { builtMs: [1_124] } },
  },
  "27-dev-build-fails-beside-others": {
    loops: [
      ready({ build: 1_432, render: 2, deploy: 748, other: 11 }),
      // Skaffold kills the builds of web and worker, which takes more than two seconds.
      failed(["build", "api", "BUILD_UNKNOWN"], { build: 4_141, other: 1 }),
      ready({ build: 1_156, render: 1, deploy: 774 }),
    ],
    red: [{ failed: 2, green: 3, redMs: 5_788 }],
    artifacts: {
      web: { builtMs: [1_217, 1_121] },
      api: { builtMs: [1_423, 1_725, 1_155], failed: 1, flakes: 1 },
      worker: { builtMs: [1_430, 1_149] },
    },
  },
  "28-skaffold-verify-fails": { ...noDevLoop, failedAlone: [["verify", "api-check", "UNKNOWN_ERROR"]] },
  // Skaffold ends migrate because seed failed.
  "29-skaffold-exec-fails": { ...noDevLoop, failedAlone: [["exec", "seed", "UNKNOWN_ERROR"]] },
  "30-skaffold-verify-image-not-pulled": { ...noDevLoop, failedAlone: [["verify", "", "UNKNOWN_ERROR"]] },
  "31-dev-compilers-and-tests-fail": {
    loops: [
      ready({ build: 6_675, test: 931, render: 17, deploy: 985, other: 106 }),
      failed(["build", "api", "BUILD_UNKNOWN"], { build: 383, other: 16 }),
      ready({ build: 1_640, render: 2, deploy: 743, other: 25 }),
      failed(["build", "web", "BUILD_UNKNOWN"], { build: 4_049, other: 20 }),
      // What web was before was in the cache.
      ready({ render: 12, deploy: 440, other: 58 }),
      failed(["test", "", "TEST_CUSTOM_CMD_RUN_NON_ZERO_EXIT_ERR"], { build: 488, test: 661, other: 50 }),
      ready({ build: 441, test: 715, render: 3, deploy: 359, other: 26 }),
    ],
    red: [
      { failed: 2, green: 3, redMs: 5_268 },
      { failed: 4, green: 5, redMs: 3_337 },
      { failed: 6, green: 7, redMs: 4_434 },
    ],
    artifacts: {
      worker: { builtMs: [609, 488, 441] },
      api: { builtMs: [2_189, 382, 1_639], failed: 1, flakes: 1 },
      web: { builtMs: [3_874, 4_048], failed: 1 },
    },
  },
};
