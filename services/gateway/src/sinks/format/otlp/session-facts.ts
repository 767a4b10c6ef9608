import type { SessionDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { toSubjects } from "@tapedeck/shared/filter/subjects";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, type Offset } from "@tapedeck/shared/log/offset";
import type { FormatReader } from "../format.ts";
import { timeOf } from "./operations.ts";
import { readBack } from "./read-back.ts";

export type Labels = Readonly<Record<string, string>>;

/** What is known of a session at one of its events. */
export type SessionFacts = {
  readonly labels: Labels;
  readonly upstreamVersion: string;
  readonly startedAt: bigint | undefined;
};

type Known = { readonly events: readonly RecordedEvent[]; readonly upTo: Offset };

/** Sessions that are remembered, at most. */
const maxSessions = 500;
/** Events of one that are remembered beside its first: a dev loop may have one. */
const maxEvents = 300;

/** Reads the labels of sessions, once, and then only what was added since. */
export class SessionReader {
  readonly #reader: FormatReader;
  readonly #workspace: string;
  readonly #known = new Map<string, Promise<Known>>();
  /** The pass gives every event of a session: what was read once stays complete. */
  readonly #followsAll: boolean;
  /** The newest event of the pass. */
  #seen = logStart;

  constructor(reader: FormatReader, workspace: string, followsAll: boolean) {
    this.#reader = reader;
    this.#workspace = workspace;
    this.#followsAll = followsAll;
  }

  note(recorded: RecordedEvent): void {
    const { kind, session } = recorded.event;
    this.#seen = Math.max(this.#seen, recorded.offset) as Offset;
    if (!isOfInterest(kind)) return;
    const before = this.#known.get(session) ?? (kind === "session.started" ? Promise.resolve(nothing) : undefined);
    if (before === undefined) return;
    const reading = before.then((known) =>
      known.upTo >= recorded.offset ? known : added(known, [recorded], recorded.offset),
    );
    this.#put(session, reading);
  }

  /** The facts of the event's session when a run of it began, as far as they were recorded by the time of the event. */
  async at(
    { event, offset }: RecordedEvent,
    startedAt: bigint | undefined,
    signal: AbortSignal,
  ): Promise<SessionFacts> {
    const { session, source } = event;
    const before = this.#known.get(session) ?? Promise.resolve(undefined);
    // One after the other, so that each reads only what the one before has not.
    const until = this.#followsAll && this.#seen > offset ? this.#seen : offset;
    const reading = before.then((known) => this.#read({ session, source }, known, until, signal));
    this.#put(session, reading);
    const { events } = await reading;
    return factsIn(
      events.filter((one) => one.offset <= offset),
      startedAt,
    );
  }

  #put(session: string, reading: Promise<Known>): void {
    this.#known.delete(session);
    this.#known.set(session, reading);
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxSessions && oldest !== undefined) this.#known.delete(oldest);
    reading.catch(() => this.#known.delete(session));
  }

  async #read(
    { session, source }: { readonly session: string; readonly source: string },
    known: Known | undefined,
    until: Offset,
    signal: AbortSignal,
  ): Promise<Known> {
    if (known !== undefined && (this.#followsAll || known.upTo >= until)) return known;
    if (known !== undefined && (await this.#hasNothingAfter(known.upTo, source))) return { ...known, upTo: until };
    const { events } = await readBack(
      this.#reader,
      {
        workspace: this.#workspace,
        source,
        kinds,
        until,
        from: known?.upTo,
        isBeginning: (event) => event.kind === "session.started" && event.session === session,
        isKept: (event) => event.session === session && isOfInterest(event.kind),
      },
      signal,
    );
    return added(known ?? nothing, events, until);
  }

  /** One question costs less than a reading. */
  async #hasNothingAfter(offset: Offset, source: string): Promise<boolean> {
    return (await this.#reader.lastMatch(toSubjects({ sources: [source], kinds }, this.#workspace))) <= offset;
  }
}

const kinds = ["session.started", "session.labelled"];
const nothing: Known = { events: [], upTo: logStart };

function added({ events }: Known, more: readonly RecordedEvent[], upTo: Offset): Known {
  const all = [...events, ...more];
  return { events: all.length <= maxEvents ? all : [...all.slice(0, 1), ...all.slice(1 - maxEvents)], upTo };
}

function isOfInterest(kind: string): boolean {
  return kinds.includes(kind);
}

/** Labels that were recorded later hold for what began at their time or later. */
function factsIn(events: readonly RecordedEvent[], startedAt: bigint | undefined): SessionFacts {
  const start = events.find(({ event }) => event.kind === "session.started");
  const later = events.findLast(
    (one) => one.event.kind === "session.labelled" && (startedAt === undefined || timeOf(one) <= startedAt),
  );
  const labels = { ...detailOf(start)?.labels, ...detailOf(later)?.labels };
  return {
    labels: Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== "")),
    upstreamVersion: detailOf(start)?.upstream_version ?? "",
    startedAt: start && timeOf(start),
  };
}

function detailOf(recorded: RecordedEvent | undefined): SessionDetail | undefined {
  const detail = recorded?.event.detail;
  return detail?.$case === "session_detail" ? detail.value : undefined;
}
