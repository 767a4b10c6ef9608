import { jetstreamManager } from "@nats-io/jetstream";
import { openEnds } from "@tapedeck/ingest/for-cli/maintain";
import { forgetSessions } from "@tapedeck/query/for-cli/maintain";
import { openLog } from "@tapedeck/shared/log/jetstream";
import type { LogReader } from "@tapedeck/shared/log/log";
import { beyondAll, earlierOf, logStart, type Offset, sequenceOf } from "@tapedeck/shared/log/offset";
import { streamOf, workspaceFilter } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats } from "@tapedeck/shared/service/nats";
import { demoWorkspace } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { readMetrics, sumOf } from "../../api/metrics.ts";
import type { Demo } from "./demo.ts";

const minute = 60_000;

export type PauseUnwatched = {
  readonly demo: Pick<Demo, "pause" | "resume">;
  /** The gateway's HTTP, "host:port". */
  readonly http: string;
  readonly printLine: (line: string) => void;
  readonly signal: AbortSignal;
  /** Default 30 minutes. */
  readonly unwatchedMs?: number;
  /** Default 2 s. */
  readonly pollMs?: number;
};

/** Pauses the demo after half an hour without a request to Tapedeck; it resumes with the next one. */
export async function pauseUnwatched(options: PauseUnwatched): Promise<void> {
  const { demo, http, printLine, signal, unwatchedMs = 30 * minute, pollMs = 2_000 } = options;
  const started = Date.now();
  let isPaused = false;
  while (!signal.aborted) {
    await delay(pollMs, signal);
    const seconds = sumOf(await readMetrics(http), "tapedeck_gateway_last_viewer_timestamp_seconds");
    // A gateway that is just restarting gives no value, or 0.
    if (seconds === undefined) continue;
    const isWatched = Date.now() - Math.max(started, seconds * 1_000) < unwatchedMs;
    if (isWatched === !isPaused) continue;
    isPaused = !isWatched;
    if (isPaused) demo.pause();
    else demo.resume();
    printLine(isPaused ? "no viewers: the demo pauses until the next request" : "the demo continues");
  }
}

export type ForgetOld = {
  readonly nats: { readonly url: string; readonly user: string; readonly password: string };
  /** Its tables forget the sessions that are gone from the log. */
  readonly databaseUrl?: string;
  readonly signal: AbortSignal;
  /** Default 2 hours. */
  readonly keepMs?: number;
  /** Default 5 minutes. */
  readonly everyMs?: number;
};

/**
 * Drops events older than two hours from the demo's log and tables. A running session stays whole, because ingest reads
 * it back when it meets that process again; that is why the stream has no maximum age.
 */
export async function forgetOld(options: ForgetOld): Promise<void> {
  const { nats, databaseUrl, signal, keepMs = 120 * minute, everyMs = 5 * minute } = options;
  await using stack = new AsyncDisposableStack();
  const connection = stack.adopt(await connectNats("demo", nats, silentLogger), (nc) => nc.close());
  const open = async () => {
    const log = stack.use(await openLog(connection, { workspace: demoWorkspace, create: false, syncKnown: true }));
    const ends = stack.use(await openEnds(connection, { workspace: demoWorkspace, epoch: log.epoch }));
    return { reader: log.reader, ends, jsm: await jetstreamManager(connection) };
  };
  let opened: Awaited<ReturnType<typeof open>> | undefined;
  const forget = async () => {
    opened ??= await open();
    const { reader, ends, jsm } = opened;
    const recent = await reader.firstSince(new Date(Date.now() - keepMs));
    const current = await firstOfCurrentSessions(reader, signal);
    if (current === undefined) return;
    const keep = earlierOf(recent ?? beyondAll, current);
    const seq = sequenceOf(keep);
    if (seq <= 1) return;
    await ends.dropBefore(seq);
    await jsm.streams.purge(streamOf(demoWorkspace), { seq });
    if (databaseUrl !== undefined) await forgetSessions(databaseUrl, demoWorkspace, keep);
  };
  // NATS may be away, and a demo that has just begun has no log yet: the next time will do.
  for (; !signal.aborted; await delay(everyMs, signal)) await forget().catch(() => {});
}

/** Start of the oldest current session of any source. (A request to the gateway would count as a viewer.) */
async function firstOfCurrentSessions(reader: LogReader, signal: AbortSignal): Promise<Offset | undefined> {
  const starts = new Map<string, Offset>();
  const { lastOffset } = await reader.bounds();
  const from = {
    afterOffset: logStart,
    subjects: [workspaceFilter(demoWorkspace).replace(/>$/, "*.*.*.tapedeck.session")],
  };
  for await (const { event, offset } of reader.history(from, lastOffset, signal)) {
    if (event.kind === "session.started") starts.set(event.source, offset);
  }
  const [first, ...others] = starts.values();
  return first && others.reduce(earlierOf, first);
}
