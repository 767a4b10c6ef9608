import type { ChannelEnded, Dropped } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampKey } from "@tapedeck/shared/time/timestamp";
import type { Normalizer } from "../../normalize/normalizer.ts";
import type { Numbered } from "../frames/numbering.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import { gapFilled, lostBetween, sessionGap } from "../own-facts/gap-facts.ts";
import { channelLost } from "../own-facts/upstream-facts.ts";
import type { UpstreamConnection } from "./connection.ts";

/** gRPC status of a method that the upstream does not implement. */
const unimplemented = 12;

/**
 * Records what is missing of a session's channels. Each method that publishes gives how many events have been added in
 * total by then, or 0 if there is nothing to record.
 */
export class ChannelGaps {
  readonly #journal: SourceJournal;
  readonly #normalizer: Normalizer;

  constructor(journal: SourceJournal, normalizer: Normalizer) {
    this.#journal = journal;
    this.#normalizer = normalizer;
  }

  /** The upstream ended a channel of a connection that is still there. */
  ended({ id, address, session }: UpstreamConnection, ended: ChannelEnded, at: Timestamp): number {
    const { history } = this.#journal;
    const { channel, code, message, final } = ended;
    const lostChannels = history.connection?.lostChannels;
    const isKnown = lostChannels?.has(channel) ?? false;
    // A crash may have come between the two events: the tap then pushes the same item again.
    const isAgain = isKnown && timestampKey(lostChannels?.get(channel)) === timestampKey(at);
    if (isKnown && (!isAgain || history.hasGap(channel, at))) return 0;
    const reason = final ? `${message} (final for this process)` : message;
    const lost = isKnown
      ? []
      : [this.#journal.own(session, channelLost({ connection: id, address }, { channel, code, reason }), at)];
    // A channel that the upstream does not have misses nothing.
    if (!final || code === unimplemented || session === "") return this.#journal.publish(lost);
    const open = this.#normalizer.channels.some(({ name, replays }) => name === channel && replays);
    const gap = sessionGap(channel, `its stream broke: ${message}`, { open });
    return this.#journal.publish([...lost, this.#journal.own(session, gap, at)]);
  }

  /** Everything that the open gap missed has arrived. */
  filled({ session }: UpstreamConnection, channel: string, at: Timestamp): number {
    const { history, numbers } = this.#journal;
    if (session === "" || !history.session?.openGaps.has(channel)) return 0;
    // A file does not contain the channels that repeat only a part.
    const isUnknown = this.#normalizer.channels.some(({ name, replays }) => !replays && numbers.ordinal(name) > 0);
    if (channel === "" && isUnknown) return 0;
    return this.#journal.publish([this.#journal.own(session, gapFilled(channel), at)]);
  }

  /** The tap dropped frames. */
  dropped(
    connection: UpstreamConnection | undefined,
    { channel, count, bytes, reason }: Dropped,
    at: Timestamp,
  ): number {
    const { history } = this.#journal;
    if (history.hasGap(channel, at)) return 0;
    const session = connection?.session || (history.session?.open ? history.session.id : "");
    const introduction = this.#journal.introduction(at);
    const gap = sessionGap(channel, reason, { dropped: { frames: count, bytes } });
    return this.#journal.publish([...introduction, this.#journal.own(session, gap, at)]);
  }

  /**
   * The gaps of channels that sent frames before and repeated nothing now: the upstream dropped their buffer, and the rest
   * was missed. Publish them.
   */
  silent({ session, rejoined, resumedOffset, channels }: UpstreamConnection, at: Timestamp): readonly Numbered[] {
    if (!rejoined || resumedOffset !== undefined) return [];
    const { numbers } = this.#journal;
    return this.#normalizer.channels
      .filter(({ name, replays }) => !replays && !channels.has(name) && numbers.ordinal(name) > 0)
      .map(({ name }) => this.#journal.own(session, lostBetween(name), at));
  }
}
