import type { Closed, Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { SourceName } from "@tapedeck/shared/source";
import { breather } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments } from "@tapedeck/shared/time/moment";
import { ulid } from "ulid";
import { channelNames, type Normalizer } from "../../normalize/normalizer.ts";
import { lastNumbers } from "../frames/channel-store.ts";
import type { Numbered } from "../frames/numbering.ts";
import type { KnownSession, LogPast } from "../journal/source-history.ts";
import type { Book } from "../journal/source-journal.ts";
import type { Fingerprint } from "../own-facts/session-facts.ts";
import { sessionDescribed, sessionEnded, sessionIdentified, sessionStarted } from "../own-facts/session-facts.ts";
import { upstreamRestored } from "../own-facts/upstream-facts.ts";
import { type Connection, fingerprintOf, spokenBy } from "./connection.ts";
import { lossOf } from "./session-loss.ts";
import { isRepeatOf, matchSession } from "./session-match.ts";

export type SessionsOptions = {
  readonly book: Book;
  readonly reader: LogPast;
  readonly source: SourceName;
  readonly reading: Normalizer;
  readonly hello: Hello;
  readonly signal: AbortSignal;
};

/** Which session a connection belongs to, and how sessions begin, go on and end. */
export type Sessions = {
  /** Whether secrets are masked in the session that is recorded now, or in the next one. */
  redact(): "on" | "off";
  find(connection: Connection, isLast: boolean): Promise<KnownSession | "new" | "wait">;
  /** `identity`: what the upstream itself says that it is. */
  begin(connection: Connection, at: Moment, identity?: Fingerprint & { readonly version: string }): void;
  rejoin(connection: Connection, session: KnownSession, at: Moment): Promise<void>;
  /** What the connection was taken for goes on no more: this is another lifetime of the upstream, known by the same name. */
  replace(connection: Connection, at: Moment): void;
  /** The end of the session, when the end of this connection tells that; to be published. */
  end(connection: string, closed: Closed, at: Moment): readonly Numbered[];
};

export function openSessions({ book, reader, source, reading, hello, signal }: SessionsOptions): Sessions {
  const { history, numbers, writer } = book;
  const redactOfNew = hello.redact === "off" ? "off" : "on";

  /** Most often the newest; an earlier one where something was imported in between, or a session was begun in error. */
  async function find(connection: Connection, isLast: boolean): Promise<KnownSession | "new" | "wait"> {
    const breathe = breather();
    const settings = new Set([history.session?.redact ?? redactOfNew, ...history.sessions.map(({ redact }) => redact)]);
    for (const redact of settings) {
      for (const frame of [...connection.channels.values()].flatMap(({ waiting }) => waiting)) {
        await frame.prepare(redact);
        frame.masked(redact);
        await breathe();
      }
      const spoken = spokenBy(connection, redact);
      const known = history.sessions.find((one) => one.redact === redact && isRepeatOf(one, spoken));
      if (known !== undefined) return known;
    }
    const newest = history.session;
    const verdict = matchSession(newest, spokenBy(connection, newest?.redact ?? redactOfNew), isLast);
    return verdict === "same" && newest !== undefined ? newest : verdict === "wait" ? "wait" : "new";
  }

  /** In one group, so that a crash leaves no session without its fingerprints. */
  function begin(connection: Connection, at: Moment, identity?: Fingerprint & { readonly version: string }): void {
    const events: Numbered[] = endReplaced(at);
    connection.session = ulid();
    numbers.begin(connection.session);
    const { labels } = hello;
    const start = sessionStarted({ labels, redact: redactOfNew, version: identity?.version ?? "" });
    events.push(book.own(connection.session, start, at));
    if (identity !== undefined) {
      events.push(book.own(connection.session, sessionIdentified("identity", identity), at));
    }
    for (const [name, { waiting }] of connection.channels) {
      const fingerprint = fingerprintOf(waiting, redactOfNew);
      if (fingerprint === undefined) continue;
      events.push(book.own(connection.session, sessionIdentified(name, fingerprint), at));
    }
    book.publish(events);
  }

  async function rejoin(connection: Connection, session: KnownSession, at: Moment): Promise<void> {
    if (session.id !== numbers.session) {
      book.publish(endReplaced(at));
      await writer.reached(writer.appended);
      const expiresUntil = book.expires ? writer.lastSeq : undefined;
      numbers.goOn(
        session.id,
        await lastNumbers({ reader, source, session, signal, expiresUntil }, channelNames(reading)),
      );
    }
    const { id, address } = connection;
    connection.session = session.id;
    connection.rejoined = true;
    book.publish([book.own(session.id, upstreamRestored({ connection: id, address }), at)]);
  }

  function replace(connection: Connection, at: Moment): void {
    const { session } = history;
    if (session === undefined) return;
    const sha = session.fingerprints.get("identity") ?? "";
    // What the upstream has said of itself on this connection stands in the session that ends.
    const described = [...session.described].map(([channel, { state }]) => sessionDescribed(channel, state));
    begin(connection, at, { at, sha, version: session.version });
    book.publish(described.map((fact) => book.own(connection.session, fact, at)));
  }

  /** Nobody saw it end: some time after its last event; a moment after it, where its tap was there all the time. */
  function endReplaced(at: Moment): Numbered[] {
    const { session, lastAt = at } = history;
    const reason = "replaced by another process";
    if (!session?.open) return [];
    if (session.cutOff) return lossOf(book, { session: session.id, reason, since: undefined }, at);
    return [book.own(session.id, sessionEnded(reason), compareMoments(lastAt, at) > 0 ? lastAt : at, lastAt)];
  }

  /** When the tap knows that the process is gone. */
  function end(connection: string, closed: Closed, at: Moment): readonly Numbered[] {
    const { process_ended, exit_code, unseen } = closed;
    const { session, connection: last } = history;
    if (!process_ended || !session?.open || last?.id !== connection) return [];
    // A connection that was killed before it was known whose it is: the process that was there before it is gone as well.
    if (last.session !== session.id && !(unseen && last.session === "")) return [];
    if (unseen) {
      const reason = "process ended while nobody was recording";
      return lossOf(book, { session: session.id, reason, since: undefined, hasEnded: true }, at);
    }
    const reason = exit_code === undefined ? "process ended" : `process ended with exit code ${exit_code}`;
    return [book.own(session.id, sessionEnded(reason), at)];
  }

  return { redact: () => history.session?.redact ?? redactOfNew, find, begin, rejoin, replace, end };
}
