import { decodeEvent } from "@tapedeck/shared/events/codec";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import { eventsIn, labelsOf } from "@tapedeck/shared/log/batch/batch";
import type { KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import type { Log } from "@tapedeck/shared/log/jetstream";
import type { StoredMessage } from "@tapedeck/shared/log/log";
import { type Sequence, sequenceOf } from "@tapedeck/shared/log/offset";
import { sourceOfSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { isAhead, type LogEnds } from "../record/journal/ends.ts";
import type { Pace } from "../record/maintain/pace.ts";
import { Absences } from "./absences.ts";
import { type Hole, SourceHoles } from "./holes.ts";

export type LogCheckOptions = {
  readonly log: Pick<Log, "stored" | "reader">;
  readonly ends: Pick<LogEnds, "all" | "firstSeq" | "dropBefore">;
  /** The messages that the stream drops by its operator's limits. */
  readonly dropped: () => Promise<Dropped>;
  /** Messages a second, at most. */
  readonly rate: number;
  /** It rests while recording is delayed. */
  readonly pace: Pick<Pace, "rest">;
  readonly signal: AbortSignal;
};

export type LogCheckResult = {
  readonly holes: readonly Hole[];
  /** Where something is missing, also what gaps in the log report. */
  readonly places: readonly KnownHole[];
  /** Events that are known to be lost, by gaps that stand in the log. */
  readonly reported: ReadonlyMap<SourceName, number>;
  readonly messages: number;
  readonly lastSeq: Sequence;
};

export type Dropped = "nothing" | "oldest" | "anywhere";

/** How many messages are read before the clock is checked again. */
const stride = 100;

/**
 * Reads all of the log once, message by message and no faster than it may, and finds what is missing of each source.
 * Undefined when the signal aborts. Rejects when the log is unavailable.
 */
export async function checkLog(options: LogCheckOptions): Promise<LogCheckResult | undefined> {
  const { log, ends, rate, pace, signal } = options;
  const known = await ends.all();
  const { firstSeq } = await messagesOf(log);
  await ends.firstSeq(firstSeq);
  const sources = new Map<SourceName, SourceHoles>();
  const holesOf = (source: SourceName) => {
    const found = sources.get(source) ?? new SourceHoles({ source, nowMs: Date.now });
    sources.set(source, found);
    return found;
  };
  const absences = new Absences(firstSeq);
  const began = performance.now();
  let workedSince = began;
  let messages = 0;
  let done: Sequence = 0;
  // A mark precedes the removal of what it erases, so every mark has been read when the end is reached.
  for (let { lastSeq } = await messagesOf(log); done < lastSeq; { lastSeq } = await messagesOf(log)) {
    for await (const stored of log.stored({ first: done + 1, last: lastSeq, subjects: [] }, signal)) {
      absences.reached(stored.seq);
      scan(stored, holesOf);
      messages++;
      if (messages % stride > 0) continue;
      await pace.rest(performance.now() - workedSince, signal);
      const earlyMs = (messages / rate) * 1_000 - (performance.now() - began);
      await delay(Math.max(0, earlyMs), signal);
      workedSince = performance.now();
    }
    if (signal.aborted) return undefined;
    done = lastSeq;
  }
  absences.reached(done + 1);
  // A source that was erased meanwhile has no end any more, or has begun anew.
  const kept = await ends.all();
  for (const [source, end] of known) {
    const now = kept.get(source);
    if (now !== undefined && !isAhead(end.cursor, now.cursor)) holesOf(source).end(end);
  }
  const begin = await firstOnPurpose(options, firstSeq);
  const checked = [...sources.values()];
  return {
    holes: checked.flatMap((one) => one.holes(begin)),
    places: checked.flatMap((one) => one.allHoles(begin)).flatMap((place) => absences.within(place)),
    reported: new Map([...sources].flatMap(([source, { reported }]) => (reported > 0 ? [[source, reported]] : []))),
    messages,
    lastSeq: done,
  };
}

/** The log's first and last message. */
async function messagesOf({ reader }: LogCheckOptions["log"]) {
  const { firstOffset, lastOffset } = await reader.bounds();
  return { firstSeq: sequenceOf(firstOffset), lastSeq: sequenceOf(lastOffset) };
}

/**
 * Messages before it may be gone on purpose, as known when all is read: messages are dropped meanwhile. `seenFirst`:
 * the log's first sequence when the check began.
 */
async function firstOnPurpose({ log, ends, dropped }: LogCheckOptions, seenFirst: Sequence): Promise<Sequence> {
  const [reportedFirst, { firstSeq, lastSeq }, what] = await Promise.all([
    ends.firstSeq(seenFirst),
    messagesOf(log),
    dropped(),
  ]);
  const first = what === "anywhere" ? lastSeq + 1 : what === "oldest" || firstSeq > seenFirst ? firstSeq : 1;
  // Limits may be taken away later, and what they dropped is missing then still.
  if (what !== "nothing" && first > reportedFirst) await ends.dropBefore(first);
  return Math.max(first, reportedFirst);
}

function scan({ subject, cursor, data, ...seen }: StoredMessage, holesOf: (source: SourceName) => SourceHoles): void {
  const source = sourceOfSubject(subject);
  const held = heldIn(data);
  if (source === undefined || cursor === undefined || held === undefined) return;
  const counts = new Map<string, number>();
  for (const { labels } of held) counts.set(labels.channel, (counts.get(labels.channel) ?? 0) + 1);
  const events = held.flatMap(({ bytes, labels }) => (speaksOfLog(labels) ? eventIn(bytes) : []));
  holesOf(source).add({ ...seen, cursor, counts: Object.fromEntries(counts), events });
}

type Held = { readonly bytes: Uint8Array; readonly labels: ReturnType<typeof labelsOf> };

/** Undefined for something else than a batch of events. */
function heldIn(data: Uint8Array): readonly Held[] | undefined {
  try {
    return eventsIn(data).map((bytes) => ({ bytes, labels: labelsOf(bytes) }));
  } catch {
    return undefined;
  }
}

function speaksOfLog({ channel, kind }: Held["labels"]): boolean {
  return channel === ownChannel && (/^(session|upstream)\./.test(kind) || kind === "source.erased");
}

function eventIn(data: Uint8Array) {
  try {
    return [decodeEvent(data)];
  } catch {
    return [];
  }
}
