import { createHash } from "node:crypto";

/** What has a trace of its own: an iteration of a dev loop, a command, a run of a pod, or a session that has no loops. */
export type RunKey = {
  readonly kind: "loop" | "command" | "pod" | "session";
  readonly session: string;
  /** 0 where it is not a loop. */
  readonly runner: number;
  readonly loop: number;
  /** The job of a command, the pod of its run; else empty. */
  readonly instance: string;
};

export function runText({ kind, session, runner, loop, instance }: RunKey): string {
  return [kind, session, runner, loop, instance].join("\0");
}

/** 16 bytes. */
export function traceIdOf(run: RunKey): Buffer {
  return hash(`trace\0${runText(run)}`).subarray(0, 16);
}

/** 8 bytes: the span of the run itself. */
export function rootSpanIdOf(run: RunKey): Buffer {
  return hash(`run\0${runText(run)}`).subarray(0, 8);
}

/** `event`: the id of the event that began the operation, or of its first one. */
export function taskSpanIdOf(run: RunKey, event: string): Buffer {
  return hash(`task\0${runText(run)}\0${event}`).subarray(0, 8);
}

function hash(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
