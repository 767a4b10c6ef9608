/** A run of a pod as a person reads it from a recording: the polls of the host, and what was done to it. */
export type LabelledRun = {
  /** First and last four digits of the pod's id. */
  readonly pod: string;
  /** A code of 0 means nothing, because rkt also reports it for an app that was killed. Absent: it runs. */
  readonly outcome?: "failed" | "unknown";
  /** The state in the last poll that had it. */
  readonly state: string;
  readonly gone?: true;
  readonly apps: number;
  readonly failedApps?: number;
  /** Whether rkt reports when it started. */
  readonly started?: false;
};

/** A failure as a person reads it from the polls: the pod, its app, and the code with which the app ended. */
export type LabelledFailure = readonly [pod: string, app: string, code: string];

/** By recording, in the order of their ends, which two of one poll share: then in that of the pod's list. */
export const labelledFailures: Readonly<Record<string, readonly LabelledFailure[]>> = {
  "01-full-lifecycle": [["c6e2-ed83", "batch", "7"]],
  "02-fast-and-skipped-states": [
    ["7ca2-548a", "batch", "3"],
    ["1a1e-6ece", "worker", "15"],
  ],
  "03-prepare-aborted": [],
  "05-app-exit-codes": [
    ["3074-6b6c", "fails", "42"],
    // Killed by SIGTERM.
    ["3074-6b6c", "victim", "15"],
    ["a1c8-5666", "worker", "203"],
  ],
  "06-filters": [],
  "07-errors": [],
  "10-blocking-start": [],
  "11-image-cache": [],
  "14-false-aborted-prepare": [["34ef-5236", "batch", "4"]],
};

/**
 * By recording, in the order of the ids. Pods without an attempt to run them, and pods that no poll saw, have no run;
 * pods that existed when the recording began have one only once they end.
 */
export const labelledRuns: Readonly<Record<string, readonly LabelledRun[]>> = {
  // The app batch ended with 7 while the two others continued. In the last polls rkt was deleting the pod.
  "01-full-lifecycle": [
    { pod: "c6e2-ed83", outcome: "failed", state: "UNDEFINED", gone: true, apps: 3, failedApps: 1 },
  ],
  // D existed between two polls; E was prepared and removed. The last poll missed all others: one more would make it
  // certain.
  "02-fast-and-skipped-states": [
    { pod: "07bf-d870", outcome: "unknown", state: "GARBAGE", apps: 1 },
    // Stopped: 15 is the number of the signal.
    { pod: "1a1e-6ece", outcome: "failed", state: "EXITED", gone: true, apps: 2, failedApps: 1 },
    { pod: "63fb-3b24", outcome: "unknown", state: "GARBAGE", apps: 1 },
    { pod: "7ca2-548a", outcome: "failed", state: "GARBAGE", apps: 1, failedApps: 1 },
    // Killed, and no code was written.
    { pod: "b2d4-3443", outcome: "unknown", state: "EXITED", apps: 1 },
  ],
  "03-prepare-aborted": [],
  "05-app-exit-codes": [
    { pod: "3074-6b6c", outcome: "failed", state: "EXITED", apps: 3, failedApps: 2 },
    // Its app ended with 6, but stage1-fly writes no codes.
    { pod: "8bf0-51e8", outcome: "unknown", state: "EXITED", apps: 1 },
    { pod: "a1c8-5666", outcome: "failed", state: "EXITED", apps: 1, failedApps: 1 },
    { pod: "bbcf-7077", outcome: "unknown", state: "EXITED", apps: 1 },
  ],
  // All seven pods existed before, and nothing was done to them.
  "06-filters": [],
  "07-errors": [],
  "10-blocking-start": [
    { pod: "dbec-22d7", outcome: "unknown", state: "EXITED", apps: 1 },
    // It died before its pid file: rkt has its end, and no start.
    { pod: "ed27-ed3f", outcome: "unknown", state: "EXITED", apps: 1, started: false },
  ],
  "11-image-cache": [],
  "14-false-aborted-prepare": [{ pod: "34ef-5236", outcome: "failed", state: "EXITED", apps: 1, failedApps: 1 }],
};
