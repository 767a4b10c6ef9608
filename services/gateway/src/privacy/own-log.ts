import type { HeldBatches, HeldEvent, LogReader, PageReader, ReadFrom, RecordedEvent } from "@tapedeck/shared/log/log";
import { everySubject } from "@tapedeck/shared/log/subjects";
import { asciiName } from "@tapedeck/shared/source";
import { nobody } from "./own-developer.ts";

/**
 * The log without the events of other developers. Subjects are narrowed so that they are not read, and every event is checked,
 * whatever the subjects were. Its type names every method, so that a new one is not served before it is decided here.
 */
export function ownLog(log: LogReader, developer: string): LogReader {
  const token = asciiName(developer);
  const isOwn = ({ subject }: Pick<HeldEvent, "subject">) => developerToken(subject) === token;
  const own = (from: ReadFrom): ReadFrom => ({ ...from, subjects: ownSubjects(from.subjects, token) });
  return {
    epoch: log.epoch,
    formerEpochs: log.formerEpochs,
    bounds: () => log.bounds(),
    now: () => log.now(),
    assertRetained: (afterOffset) => log.assertRetained(afterOffset),
    firstSince: (time) => log.firstSince(time),
    lastMatch: (subjects) => log.lastMatch(ownSubjects(subjects, token)),
    read: (offsets, signal) => ownEvents(log.read(offsets, signal), isOwn),
    history: (from, untilOffset, signal) => ownEvents(log.history(own(from), untilOffset, signal), isOwn),
    follow: (from, options) => ownEvents(log.follow(own(from), options), isOwn),
    readBatches: (offsets, signal) => ownBatches(log.readBatches(offsets, signal), isOwn),
    historyBatches: (from, untilOffset, signal) =>
      ownBatches(log.historyBatches(own(from), untilOffset, signal), isOwn),
    followBatches: (from, options) => ownBatches(log.followBatches(own(from), options), isOwn),
    pages: ownPages(log.pages, own, isOwn),
  };
}

type IsOwn = (event: Pick<HeldEvent, "subject">) => boolean;

function ownPages(pages: PageReader, own: (from: ReadFrom) => ReadFrom, isOwn: IsOwn): PageReader {
  return {
    epoch: pages.epoch,
    formerEpochs: pages.formerEpochs,
    bounds: () => pages.bounds(),
    now: () => pages.now(),
    assertRetained: (afterOffset) => pages.assertRetained(afterOffset),
    firstSince: (time) => pages.firstSince(time),
    read: (offsets, signal) => ownEvents(pages.read(offsets, signal), isOwn),
    history: (from, untilOffset, signal) => ownEvents(pages.history(own(from), untilOffset, signal), isOwn),
  };
}

async function* ownEvents(events: AsyncIterable<RecordedEvent>, isOwn: IsOwn): AsyncGenerator<RecordedEvent, void> {
  for await (const recorded of events) if (isOwn(recorded)) yield recorded;
}

async function* ownBatches(batches: HeldBatches, isOwn: IsOwn): HeldBatches {
  for await (const batch of batches) {
    const own = batch.filter(isOwn);
    if (own.length > 0) yield own;
  }
}

/** The tokens of a subject: tapedeck.v2.<workspace>.<developer>.<project>.<upstream>.<channel>.<noun>. */
const developerAt = 3;

function developerToken(subject: string): string | undefined {
  return subject.split(".", developerAt + 1)[developerAt];
}

/** The subjects without those of other developers. An empty list would match everything. */
function ownSubjects(subjects: readonly string[], token: string): readonly string[] {
  const own = (subjects.length === 0 ? [everySubject] : subjects).flatMap((subject) => {
    const tokens = subject.split(".");
    const at = tokens[developerAt];
    if (at === undefined) return [`${root}.*.${token}.>`];
    if (at === ">") return [[...tokens.slice(0, developerAt), token, ">"].join(".")];
    if (at === "*") return [tokens.with(developerAt, token).join(".")];
    return at === token ? [subject] : [];
  });
  return own.length > 0 ? own : [`${root}.*.${nobody}.>`];
}

const root = everySubject.slice(0, -".>".length);
