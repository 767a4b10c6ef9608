import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Offset } from "@tapedeck/shared/log/offset";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { isImport } from "../own-facts/import-facts.ts";

export type KnownConnection = {
  readonly id: string;
  readonly address: string;
  /** The channel that reports the steps instead of the usual one, which an imported file does not have; else empty. */
  readonly standIn: string;
  /** Empty in logs that were written before taps were recorded. */
  readonly tap: string;
  /** Offset of upstream.connected. */
  readonly offset: Offset;
  /** Empty until its session is known, and after that session was erased. */
  session: string;
  /** It belongs to a session that existed before it. */
  rejoined: boolean;
  lost: boolean;
  /** Its tap vanished after this moment. It may come back and continue. */
  silentSince: Timestamp | undefined;
  /** When it was lost, by the reporter's clock. */
  lostAt: Timestamp | undefined;
  /** The tap has reported its end, so nothing more comes from it. */
  closed: boolean;
  /** When a channel was lost, by the reporter's clock. */
  readonly lostChannels: Map<string, Timestamp | undefined>;
};

type UpstreamDetail = Extract<NonNullable<Event["detail"]>, { $case: "upstream" }>["value"];

/** The connections of a source, learnt from the events of Tapedeck's own channel. */
export class KnownConnections {
  #current: KnownConnection | undefined;
  readonly #over = new Set<string>();
  readonly #interrupted = new Map<string, KnownConnection>();

  get current(): KnownConnection | undefined {
    return this.#current;
  }

  /** An earlier connection whose frames are all in the log. */
  isOver(id: string): boolean {
    return this.#over.has(id);
  }

  /** A connection whose tap had not pushed everything when another tap's connection was recorded. */
  interrupted(id: string): KnownConnection | undefined {
    return this.#interrupted.get(id);
  }

  connect({ connection: id, address, channel: standIn, tap }: UpstreamDetail, offset: Offset): void {
    const before = this.#current;
    if (before !== undefined && !before.closed && before.tap !== "" && before.tap !== tap) {
      this.#interrupted.set(before.id, before);
    } else if (before !== undefined) this.#over.add(before.id);
    this.#interrupted.delete(id);
    const initial = { session: "", rejoined: false, lost: false, silentSince: undefined, closed: false };
    this.#current = { id, address, standIn, tap, offset, ...initial, lostAt: undefined, lostChannels: new Map() };
  }

  /** The connection belongs to the session that has just begun. */
  sessionBegan(session: string): void {
    // An import adds none of its own events to the session.
    if (this.#current !== undefined && !this.#current.lost && !isImport(this.#current)) this.#current.session = session;
  }

  /** Items that the tap still pushes for the connection no longer belong to the erased session. */
  sessionErased(session: string): void {
    if (this.#current?.session !== session) return;
    this.#current.session = "";
    this.#current.rejoined = false;
  }

  restored(session: string): void {
    const connection = this.#current;
    if (connection === undefined) return;
    // A connection that continues repeats nothing, so it belongs to the same session as before.
    if (connection.silentSince !== undefined) connection.silentSince = undefined;
    else {
      connection.session = session;
      connection.rejoined = true;
    }
  }

  lost({ channel, unheard: isSilent }: UpstreamDetail, { inferred, not_before, observed_at }: Event): void {
    const connection = this.#current;
    if (connection === undefined) return;
    if (channel !== "") connection.lostChannels.set(channel, observed_at);
    else if (isSilent) connection.silentSince = not_before ?? observed_at;
    else {
      connection.lost = true;
      connection.lostAt = observed_at;
      connection.closed = !inferred;
    }
  }
}
