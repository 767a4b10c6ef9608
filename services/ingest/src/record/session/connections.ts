import type { Closed, Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import type { KnownConnection } from "../journal/known-connections.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import { gapFilled } from "../own-facts/gap-facts.ts";
import { upstreamConnected, upstreamLost, upstreamSeenAgain } from "../own-facts/upstream-facts.ts";
import type { ChannelGaps } from "./channel-gaps.ts";
import { connectionOf, runPending, type UpstreamConnection } from "./connection.ts";
import type { FrameRecorder } from "./frame-recorder.ts";
import type { Sessions } from "./sessions.ts";

export type ConnectionsOptions = {
  readonly journal: SourceJournal;
  readonly hello: Hello;
  readonly sessions: Sessions;
  readonly frames: FrameRecorder;
  readonly gaps: ChannelGaps;
};

/** The tap's connections to the upstream, one after the other: records that they begin, continue and end. */
export class Connections {
  readonly #options: ConnectionsOptions;
  #current: UpstreamConnection | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#tapIsBack();
  }

  get current(): UpstreamConnection | undefined {
    return this.#current;
  }

  /** The upstream is connected, as far as the tap has reported. */
  get areUp(): boolean {
    const { connection } = this.#options.journal.history;
    if (this.#current !== undefined) return true;
    return connection !== undefined && !connection.lost && connection.silentSince === undefined;
  }

  /** An earlier recorder, or this one, recorded the end of this connection, and none since. */
  isLost(id: string): boolean {
    const { connection } = this.#options.journal.history;
    return connection?.id === id && connection.lost;
  }

  /** The last connection in the log becomes the current one, if it is this. */
  resume(id: string): boolean {
    const { connection } = this.#options.journal.history;
    if (connection?.id !== id) return false;
    this.#current = resumed(connection);
    return true;
  }

  /** The tap has a new connection. */
  async begin(id: string, dialled: Pick<UpstreamConnection, "address" | "standIn">, at: Timestamp): Promise<void> {
    const { journal, hello, sessions } = this.#options;
    const { history } = journal;
    const before = history.connection;
    const interrupted = history.interrupted(id);
    const { address, standIn } = interrupted ?? dialled;
    const reason = "the tap began another connection";
    if (this.#current !== undefined) await this.close(this.#current, { reason, process_ended: false }, at, true);
    else if (before !== undefined && !before.lost && before.silentSince === undefined) {
      const lost = upstreamLost({ connection: before.id, address: before.address }, reason, true);
      journal.publish([journal.own(before.session, lost, at)]);
    }
    journal.numbers.repeatBegan();
    const introduction = journal.introduction(at);
    journal.publish([
      ...introduction,
      journal.own("", upstreamConnected({ connection: id, address, channel: standIn }, hello.tap), at),
    ]);
    this.#current = { ...connectionOf(id, address, "", undefined), standIn };
    // Only the rest of its frames comes now, which does not identify a session by itself.
    const session = history.sessions.find((one) => one.id === interrupted?.session);
    if (session !== undefined) await sessions.rejoin(this.#current, session, at);
  }

  /** Records what the connection has brought, and its end. Gives how many events have been added in total by then. */
  async close(connection: UpstreamConnection, closed: Closed, at: Timestamp, inferred = false): Promise<number> {
    const { journal, sessions, frames, gaps } = this.#options;
    await frames.close(connection, at);
    // Nothing was seen of the upstream, but the command that ran it is known.
    if (connection.session === "" && closed.process_ended && closed.command_run !== undefined) {
      sessions.begin(connection, closed.command_run.started_at ?? at);
      runPending(connection);
    }
    const { id, address, session } = connection;
    const silent = gaps.silent(connection, at);
    const lost = journal.own(session, upstreamLost({ connection: id, address }, closed.reason, inferred), at);
    this.#current = undefined;
    return journal.publish([...silent, lost, ...sessions.end(id, closed, at)]);
  }

  /** The tap of the last connection is back. It continues, and pushes what it could not push before. */
  #tapIsBack(): void {
    const { journal, hello } = this.#options;
    const { history } = journal;
    const { connection } = history;
    if (connection?.silentSince === undefined || connection.tap !== hello.tap) return;
    const { id, address, session } = connection;
    const at = timestampNow();
    journal.publish([journal.own(session, upstreamSeenAgain({ connection: id, address }), at)]);
    if (history.session?.id !== session || !history.session.openGaps.has("")) return;
    journal.publish([journal.own(session, gapFilled(""), at)]);
  }
}

/** A connection that the previous recorder knew. */
function resumed({ id, address, standIn, session, rejoined, offset }: KnownConnection): UpstreamConnection {
  return { ...connectionOf(id, address, session, session === "" ? undefined : offset), standIn, rejoined };
}
