import { readFileSync } from "node:fs";
import { join } from "node:path";

/** An operation as a recording's own JSON shows it; derived from the JSON, not from the product's code. */
export type ExpectedOperation = {
  readonly kind: "loop" | "build" | "test" | "deploy";
  readonly subject: string;
  readonly outcome: string;
  /** Whole milliseconds between the upstream's timestamps; null where the recording shows no end, or a cache hit. */
  readonly durationMs: number | null;
  readonly cacheHit: boolean;
};

type Line = { readonly result?: { readonly timestamp: string; readonly event?: Json } & Json };
type Json = { readonly [name: string]: unknown };

const outcomes: Readonly<Record<string, string>> = {
  Complete: "succeeded",
  Succeeded: "succeeded",
  Failed: "failed",
  Canceled: "canceled",
};

/** The body of a Handle call, and how many events v1 had when it was made. */
export type InjectedEvent = { readonly body: unknown; readonly after: number };

/**
 * Returns builds, tests, deploys and loops of v1, and the cache hits that only v2 reports. Events that Handle calls put
 * into v1 (their bodies are given, in order) are not Skaffold's operations. v2 says which failed builds were canceled, and
 * a loop whose last sync of an image failed has failed.
 */
export function expectedOperations(folder: string, injected: readonly InjectedEvent[] = []): ExpectedOperation[] {
  const pending = [...injected];
  const open = new Map<string, { kind: ExpectedOperation["kind"]; subject: string; at: bigint }>();
  const done: ExpectedOperation[] = [];
  const lastLoop: { index: number | undefined; started: bigint } = { index: undefined, started: 0n };

  const subtasks = read(join(folder, "v2-events.ndjson"));
  const canceled = subtasks.flatMap(({ timestamp, buildSubtaskEvent: build }) =>
    isJson(build) && build.step === "Build" && build.status === "Canceled"
      ? [{ artifact: build.artifact, at: nanos(String(timestamp)) }]
      : [],
  );
  const wasCanceled = (artifact: string, at: bigint) =>
    canceled.some((one) => one.artifact === artifact && Math.abs(Number(one.at - at)) < 100_000_000);
  const failedSyncs = new Set<unknown>();

  const close = (key: string, outcome: string, at: bigint | undefined) => {
    const began = open.get(key);
    if (began === undefined) return;
    open.delete(key);
    const { kind, subject } = began;
    done.push({ kind, subject, outcome, durationMs: at === undefined ? null : millis(at - began.at), cacheHit: false });
  };
  const report = (kind: ExpectedOperation["kind"], subject: string, status: string, at: bigint) => {
    const key = `${kind} ${subject}`;
    if (status === "In Progress") {
      close(key, "unknown", undefined);
      open.set(key, { kind, subject, at });
      if (kind === "loop") {
        lastLoop.index = undefined;
        lastLoop.started = at;
      }
      return;
    }
    const outcome = outcomes[status];
    if (outcome === undefined) return;
    if (kind === "loop" && !open.has(key) && lastLoop.index !== undefined) {
      // A retried sync ends the same loop again: its last status counts.
      const durationMs = millis(at - lastLoop.started);
      done[lastLoop.index] = { kind, subject, outcome, durationMs, cacheHit: false };
      return;
    }
    close(key, outcome, at);
    if (kind === "loop") lastLoop.index = done.length - 1;
  };

  for (const [index, { timestamp, event }] of read(join(folder, "v1-events.ndjson")).entries()) {
    if (!isJson(event)) continue;
    const at = nanos(String(timestamp));
    const handled = pending.findIndex(({ body, after }) => index >= after && isJson(body) && isSameEvent(body, event));
    if (handled >= 0) {
      pending.splice(handled, 1);
      continue;
    }
    for (const [name, value] of Object.entries(event)) {
      if (!isJson(value)) continue;
      const status = String(value.status ?? "");
      if (name === "metaEvent") for (const key of [...open.keys()]) close(key, "unknown", undefined);
      if (name === "fileSyncEvent" && status === "Failed") failedSyncs.add(value.image);
      if (name === "fileSyncEvent" && status === "Succeeded") failedSyncs.delete(value.image);
      if (name === "devLoopEvent") {
        if (status === "In Progress") failedSyncs.clear();
        report("loop", "", status === "Succeeded" && failedSyncs.size > 0 ? "Failed" : status, at);
      }
      if (name === "buildEvent") {
        const artifact = String(value.artifact);
        report("build", artifact, status === "Failed" && wasCanceled(artifact, at) ? "Canceled" : status, at);
      }
      if (name === "TestEvent") report("test", "", status, at);
      if (name === "deployEvent") report("deploy", "", status, at);
    }
  }
  for (const key of [...open.keys()]) close(key, "unknown", undefined);
  for (const { buildSubtaskEvent: build } of subtasks) {
    if (!isJson(build) || build.step !== "Cache" || build.status !== "Succeeded") continue;
    done.push({
      kind: "build",
      subject: String(build.artifact),
      outcome: "succeeded",
      durationMs: null,
      cacheHit: true,
    });
  }
  return sorted(done);
}

export function sorted(operations: readonly ExpectedOperation[]): ExpectedOperation[] {
  const key = (o: ExpectedOperation) => JSON.stringify([o.kind, o.subject, o.cacheHit, o.outcome, o.durationMs]);
  return [...operations].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

function read(file: string): readonly Json[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return []; // this recording has no such stream
  }
  return text
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => {
      const { result } = JSON.parse(line) as Line;
      return result === undefined ? [] : [result];
    });
}

function nanos(timestamp: string): bigint {
  const [, seconds = "", fraction = ""] = /^(.*?)(?:\.(\d+))?Z$/.exec(timestamp) ?? [];
  return BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/** Rounding to the nearest millisecond would invent time; the product floors, as SQL's integer milliseconds do. */
function millis(duration: bigint): number {
  return Number(duration / 1_000_000n);
}

/** A Handle body has fewer fields than the stream: all its fields are in the event. */
function isSameEvent(body: Json, event: Json): boolean {
  return (
    Object.entries(body).length > 0 &&
    Object.entries(body).every(([name, value]) => {
      const other = event[name];
      if (isJson(value)) return isJson(other) && isSameEvent(value, other);
      return typeof value === "number" || other === value;
    })
  );
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
