import { saysNothing, saysWhy } from "@tapedeck/explain";
import type { Operation } from "@tapedeck/proto/tapedeck/v1/lists";
import { delay } from "@tapedeck/shared/sync/delay";
import { LinkedController } from "@tapedeck/shared/sync/linked-controller";
import { firstFailed } from "../apis/tapedeck/compare/side.ts";
import type { QueryClient } from "../query-client.ts";
import type { CauseOf, FailedOperation } from "./format/format.ts";

/** The output that says why, and the step that failed, may be recorded after the failure. */
const outputMs = 250;
/** The least time for that, where older failures would be late. */
const leastOutputMs = 100;

/** What is not complete by then is read again after this time. */
const againMs = 150;

/** A message is posted within a second after the failure was recorded: this long it may wait for a better cause. */
const completeMs = 800;

/** The least time that query has to answer, however long ago the failure was. */
const answerMs = 400;

/** By then everything that a failure printed is recorded and read. */
const settledMs = 2_000;

/** The most steps of a loop that are read, as of a comparison. */
const maxSteps = 500;

type Known = { readonly what: string; readonly text: string; readonly place: string };

/** Reads why operations failed, as `tapedeck why` says it. Resolves with undefined where that is not known in time. */
export function causeReader(query: Pick<QueryClient, "listOperations">): CauseOf {
  return async (operation, signal) => {
    const { recordedAt, oldestRecordedAt, loop } = operation;
    const now = Date.now();
    const isSettled = now - recordedAt > settledMs;
    const until = Math.min(oldestRecordedAt, now) + completeMs;
    // The clock of the log may be ahead of this one, and others may have waited already.
    const ofOutput = Math.min(Math.max(0, recordedAt + outputMs - now), outputMs);
    await delay(Math.min(ofOutput, Math.max(leastOutputMs, until - now)), signal);
    using linked = new LinkedController(signal, Math.max(answerMs, until - Date.now()));
    const over = linked.signal;
    let known: Known | undefined;
    for (;;) {
      known = (await inTime(readCause(query, operation), over)) ?? known;
      const isComplete = known !== undefined && saysWhy(known.text) && (loop === 0 || known.what !== "");
      if (isComplete || isSettled || over.aborted || Date.now() + againMs > until) break;
      await delay(againMs, over);
    }
    // The rest of the output may say why: what has been read of it may be no more than a piece of a line.
    if (known === undefined || isSettled || saysWhy(known.text) || saysNothing(known.text)) return known;
    return { ...known, text: "", place: "" };
  };
}

async function readCause(
  query: Pick<QueryClient, "listOperations">,
  { workspace, session, kind, runner, loop, position }: FailedOperation,
): Promise<Known | undefined> {
  const isLoop = loop > 0;
  const { items } = await query.listOperations({
    workspace,
    sessions: [session],
    min_position: position,
    ...(isLoop
      ? { runner, loop, limit: maxSteps }
      : { kinds: [kind, ...(kind === "pod" ? ["app"] : [])], outcomes: ["failed"], limit: 100 }),
  });
  // Skaffold reports a loop as failed again each time that it has retried a sync.
  const unit = items.find((one) => (isLoop ? one.kind === "loop" : one.end_position === position));
  if (unit === undefined) return undefined;
  const failed = isLoop ? firstFailed(unit, items.filter((one) => one !== unit).toReversed()) : undefined;
  if (kind === "pod") return ofPod(unit, items);
  const { text, reason, file, line } = failed?.step.cause ?? unit.cause ?? noCause;
  return {
    what: failed === undefined ? "" : stepText(failed.step, failed.tries),
    text: text || reason,
    place: line === undefined || file === "" ? file : `${file}:${line}`,
  };
}

/** A pod fails because one of its apps does. */
function ofPod(pod: Operation, items: readonly Operation[]): Known | undefined {
  const start = `${pod.subject}/`;
  const apps = items.filter((one) => one.kind === "app" && one.subject.startsWith(start)).toReversed();
  const step = firstFailed(pod, apps)?.step;
  if (step === undefined) return undefined;
  const { text, reason } = step.cause ?? noCause;
  return { what: "", text: `${step.subject.slice(start.length)}: ${text || reason || step.error}`, place: "" };
}

const noCause = { text: "", reason: "", file: "", line: undefined };

/** "sync web (4 tries)" */
function stepText({ kind, subject }: Operation, tries: number): string {
  const name = subject === "" ? kind : `${kind} ${subject}`;
  return tries > 1 ? `${name} (${tries} tries)` : name;
}

async function inTime<Value>(value: Promise<Value>, over: AbortSignal): Promise<Value | undefined> {
  const late = new Promise<undefined>((resolve) => {
    over.addEventListener("abort", () => resolve(undefined), { once: true });
    if (over.aborted) resolve(undefined);
  });
  return Promise.race([value.catch(() => undefined), late]);
}
