import type { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import type { Described } from "@tapedeck/proto/tapedeck/v1/recorder";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import type { SourceName } from "@tapedeck/shared/source";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { channelNames, type Normalizer } from "../../normalize/normalizer.ts";
import type { SourceJournal } from "../journal/source-journal.ts";
import { sessionDescribed } from "../own-facts/session-facts.ts";
import type { UpstreamConnection } from "./connection.ts";

export type UpstreamStatesOptions = {
  readonly journal: SourceJournal;
  readonly normalizer: Normalizer;
  readonly source: SourceName;
  /** Larger states are not recorded. */
  readonly frameBytes: number;
  /** Called with the upstream's answer about its state, recorded or not, once everything before it is in the log. */
  readonly observed?: ((observed: Observed) => void) | undefined;
};

/** An upstream's answers about its own state: recorded when they contain something new. */
export class UpstreamStates {
  readonly #options: UpstreamStatesOptions;
  /** Ordinal of the last control call. */
  #lastCall = 0n;
  /** The last adopted state, by channel. */
  readonly #adopted = new Map<string, { readonly ordinalsKey: string; readonly state: Uint8Array }>();

  constructor(options: UpstreamStatesOptions) {
    this.#options = options;
    options.journal.listeners.add(({ kind, ordinal }) => {
      if (kind.startsWith("control.")) this.#lastCall = ordinal;
    });
  }

  /** Returns how many events have been added in total by then; 0 if nothing is recorded. */
  described({ session }: UpstreamConnection, { channel, state }: Described, at: Timestamp, index: bigint): number {
    const { journal, normalizer, frameBytes } = this.#options;
    const { history, numbers } = journal;
    // No known upstream sends this: the state exceeds what the log takes, or the name can't be a map key (`__proto__`).
    if (session === "" || state.byteLength > frameBytes || !/^[a-z]\w*$/.test(channel)) return 0;
    // The tap has pushed it again.
    if (index <= numbers.lastItem(channel)) return 0;
    numbers.took(channel, index);
    const before = history.session?.described.get(channel);
    // For a channel that sends nothing any more, the upstream's answer is all that is known of the state.
    const adopted = history.session?.openGaps.has(channel) ?? false;
    const isNew = before === undefined || (adopted && !before.adopted);
    if (!isNew && !normalizer.stateDiffers(channel, before.state, state, adopted)) return 0;
    return journal.publish([journal.own(session, sessionDescribed(channel, state, adopted), at)]);
  }

  /** Records the state that the upstream answered, unless something has come since that could have changed it. */
  adopt(
    connection: UpstreamConnection | undefined,
    { session, channel, state, ordinals: { [ownChannel]: ownOrdinal, ...ordinals } }: Observed,
  ): void {
    const { journal, normalizer } = this.#options;
    if (connection === undefined || connection.session !== session || this.#lastCall > (ownOrdinal ?? 0n)) return;
    if (isHolding(connection)) return;
    if (Object.entries(ordinals).some(([name, ordinal]) => BigInt(journal.numbers.ordinal(name)) !== ordinal)) return;
    const ordinalsKey = JSON.stringify(Object.entries(ordinals).map(([name, ordinal]) => [name, String(ordinal)]));
    const before = this.#adopted.get(channel);
    if (before?.ordinalsKey === ordinalsKey && !normalizer.stateDiffers(channel, before.state, state, true)) return;
    this.#adopted.set(channel, { ordinalsKey, state });
    journal.publish([journal.own(session, sessionDescribed(channel, state, true), timestampNow())]);
  }

  /** Reports the answer to the listener. */
  report(connection: UpstreamConnection, { channel, state }: Described, at: Timestamp): void {
    const { journal, normalizer, source, observed } = this.#options;
    const { numbers, writer } = journal;
    const { session } = connection;
    // Held frames came before the answer and have no ordinal yet.
    if (observed === undefined || session === "" || isHolding(connection)) return;
    const names = [...channelNames(normalizer), ownChannel];
    const ordinals = Object.fromEntries(names.map((name) => [name, BigInt(numbers.ordinal(name))]));
    const answer = { source, session, channel, state: asBuffer(state), ordinals, observed_at: at };
    writer.reached(writer.appended).then(
      () => observed(answer),
      () => {}, // writing has ended, which is reported elsewhere
    );
  }
}

function isHolding({ channels }: UpstreamConnection): boolean {
  return [...channels.values()].some(({ sorter }) => sorter.state === "holding");
}
