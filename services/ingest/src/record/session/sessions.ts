// Which session a connection belongs to.
//
//   frames of a new connection --> find(): has it sent the earliest frame of a known session? --> rejoin()
//                                          no, and another one in its place --> begin(), and the open session ends
//                                          too few frames to say --> wait for more
//
// 1. Skaffold's v1 and v2 repeat their history to each connection, so one early frame of a channel identifies the process.
//    Polled upstreams identify themselves.
// 2. A fingerprint is looked for among the hashes of all frames before masking: changing a rule does not split a session.
// 3. A session is published together with the fingerprints that are known by then, a later channel's with its first frame.
// 4. A source has at most one open session. An end that nobody saw is given an interval, not a time.
// Why by bytes: docs/decisions/0005-frames-are-known-by-their-bytes.md.
import type { CommandRun } from "@tapedeck/proto/tapedeck/v1/event";
import type { Closed, Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import { endOf } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import { channelNames, type Normalizer } from "../../normalize/normalizer.ts";
import { maskText } from "../../secrets/mask-text.ts";
import { lastNumbers } from "../frames/channel-store.ts";
import type { Numbered } from "../frames/numbering.ts";
import { fingerprintOf } from "../frames/pending-frame.ts";
import type { KnownSession } from "../journal/known-sessions.ts";
import type { LogHistoryReader } from "../journal/load-history.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import type { Fingerprint } from "../own-facts/session-facts.ts";
import { sessionDescribed, sessionEnded, sessionIdentified, sessionStarted } from "../own-facts/session-facts.ts";
import { upstreamRestored } from "../own-facts/upstream-facts.ts";
import { receivedBy, receivedRaw, type UpstreamConnection } from "./connection.ts";
import { lossEvents } from "./session-loss.ts";
import { isRepeatOf, matchSession } from "./session-match.ts";

export type SourceSessionsOptions = {
  readonly journal: SourceJournal;
  readonly reader: LogHistoryReader;
  readonly source: SourceName;
  readonly normalizer: Normalizer;
  readonly hello: Hello;
  readonly signal: AbortSignal;
  /** Secrets are masked also in a session that began without. */
  readonly requireRedact?: boolean | undefined;
};

/** Decides which session a connection belongs to, and begins, continues and ends sessions. */
export type Sessions = {
  /** Whether secrets are masked in the current session, or in the next one if there is none. */
  redact(): "on" | "off";
  find(connection: UpstreamConnection, isLast: boolean): Promise<KnownSession | "new" | "wait">;
  /** `identity`: how the upstream identifies itself. */
  begin(connection: UpstreamConnection, at: Timestamp, identity?: Fingerprint & { readonly version: string }): void;
  rejoin(connection: UpstreamConnection, session: KnownSession, at: Timestamp): Promise<void>;
  /** Ends the session of the connection and begins another: the upstream has the same identity in a new lifetime. */
  readonly replace: (connection: UpstreamConnection, at: Timestamp) => void;
  /** The events that end the session, if the end of this connection ends it. Publish them. */
  end(connection: string, closed: Closed, at: Timestamp): readonly Numbered[];
};

export function openSessions(options: SourceSessionsOptions): Sessions {
  return new SourceSessions(options);
}

class SourceSessions implements Sessions {
  readonly #options: SourceSessionsOptions;
  readonly #redactOfNew: "on" | "off";

  constructor(options: SourceSessionsOptions) {
    this.#options = options;
    this.#redactOfNew = options.hello.redact === "off" ? "off" : "on";
  }

  redact(): "on" | "off" {
    if (this.#options.requireRedact === true) return "on";
    return this.#options.journal.history.session?.redact ?? this.#redactOfNew;
  }

  /** Usually the newest session. An earlier one if a session was imported in between, or was begun in error. */
  async find(connection: UpstreamConnection, isLast: boolean): Promise<KnownSession | "new" | "wait"> {
    const { history } = this.#options.journal;
    const yieldIfDue = yieldToEventLoop();
    const settings = new Set([
      history.session?.redact ?? this.#redactOfNew,
      ...history.sessions.map(({ redact }) => redact),
    ]);
    const raw = receivedRaw(connection);
    const repeated = history.sessions.find((one) => isRepeatOf(one, raw));
    if (repeated !== undefined) return repeated;
    // Its fingerprint may be of masked bytes, or made with another key.
    for (const redact of settings) {
      for (const frame of [...connection.channels.values()].flatMap(({ waiting }) => waiting)) {
        await frame.prepare(redact);
        frame.masked(redact);
        await yieldIfDue();
      }
      const received = receivedBy(connection, redact);
      const known = history.sessions.find((one) => one.redact === redact && isRepeatOf(one, received));
      if (known !== undefined) return known;
    }
    const newest = history.session;
    const verdict = matchSession(newest, receivedBy(connection, newest?.redact ?? this.#redactOfNew), isLast);
    return verdict === "same" && newest !== undefined ? newest : verdict === "wait" ? "wait" : "new";
  }

  /** The session and its fingerprints are one group, so that a crash leaves none without the other. */
  begin(connection: UpstreamConnection, at: Timestamp, identity?: Fingerprint & { readonly version: string }): void {
    const { journal, hello } = this.#options;
    const events: Numbered[] = this.#endReplaced(at);
    connection.session = ulid();
    journal.numbers.begin(connection.session);
    const { labels } = hello;
    const start = sessionStarted({ labels, redact: this.#redactOfNew, version: identity?.version ?? "" });
    events.push(journal.own(connection.session, start, at));
    if (identity !== undefined) {
      events.push(journal.own(connection.session, sessionIdentified("identity", identity), at));
    }
    for (const [name, { waiting }] of connection.channels) {
      const fingerprint = fingerprintOf(waiting, this.#redactOfNew);
      if (fingerprint === undefined) continue;
      events.push(journal.own(connection.session, sessionIdentified(name, fingerprint), at));
    }
    journal.publish(events);
  }

  async rejoin(connection: UpstreamConnection, session: KnownSession, at: Timestamp): Promise<void> {
    const { journal, reader, source, normalizer, signal } = this.#options;
    const { numbers, writer } = journal;
    if (session.id !== numbers.session) {
      journal.publish(this.#endReplaced(at));
      await writer.reached(writer.appended);
      const expiresUntil = journal.expires ? endOf(writer.lastSeq) : undefined;
      numbers.continueSession(
        session.id,
        await lastNumbers({ reader, source, session, signal, expiresUntil }, channelNames(normalizer)),
      );
    }
    const { id, address } = connection;
    connection.session = session.id;
    connection.rejoined = true;
    journal.publish([journal.own(session.id, upstreamRestored({ connection: id, address }), at)]);
  }

  readonly replace = (connection: UpstreamConnection, at: Timestamp): void => {
    const { journal } = this.#options;
    const { session } = journal.history;
    if (session === undefined) return;
    const sha = session.fingerprints.get("identity") ?? "";
    // The state that the upstream described on this connection was recorded in the session that ends.
    const described = [...session.described].map(([channel, { state }]) => sessionDescribed(channel, state));
    this.begin(connection, at, { at, sha, version: session.version });
    journal.publish(described.map((fact) => journal.own(connection.session, fact, at)));
  };

  /**
   * Ends the open session at some time after its last event, because its end was not observed. If its tap was there all
   * the time, it ended right after that event.
   */
  #endReplaced(at: Timestamp): Numbered[] {
    const { journal } = this.#options;
    const { session, lastAt = at } = journal.history;
    const reason = "replaced by another process";
    if (!session?.open) return [];
    if (session.cutOff) return lossEvents(journal, { session: session.id, reason, since: undefined }, at);
    return [journal.own(session.id, sessionEnded(reason), compareTimestamps(lastAt, at) > 0 ? lastAt : at, lastAt)];
  }

  end(connection: string, closed: Closed, at: Timestamp): readonly Numbered[] {
    const { journal } = this.#options;
    const { process_ended, exit_code, unseen, command_run } = closed;
    const { session, connection: last } = journal.history;
    if (!process_ended || !session?.open || last?.id !== connection) return [];
    // A connection may be killed before its session is known. The process that was there before it is gone as well.
    if (last.session !== session.id && !(unseen && last.session === "")) return [];
    if (unseen) {
      const reason = "process ended while no tap was recording";
      return lossEvents(journal, { session: session.id, reason, since: undefined, hasEnded: true }, at);
    }
    const reason =
      exit_code === undefined
        ? `process ended${wrapperText(command_run)}`
        : `process ended with exit code ${exit_code}`;
    const ended = { exit_code, command_run: command_run && maskedRun(command_run, this.redact()) };
    return [journal.own(session.id, sessionEnded(reason, ended), at)];
  }
}

/** How the command ended that started the process. Its exit code is not the session's. */
function wrapperText(run: CommandRun | undefined): string {
  if (run?.wrapper !== true) return "";
  const { exit_code, signal, ended_at } = run;
  const code = signal === "" ? `ended with exit code ${exit_code ?? "unknown"}` : `was ended by ${signal.slice(0, 20)}`;
  return `; the command that started it ${ended_at === undefined ? "was still running" : code}`;
}

const maxCommandLine = 8_192;

function maskedRun(run: CommandRun, redact: "on" | "off"): CommandRun {
  const line = redact === "on" ? maskText(run.command_line).text : run.command_line;
  return { ...run, command_line: line.slice(0, maxCommandLine).toWellFormed(), signal: run.signal.slice(0, 20) };
}
