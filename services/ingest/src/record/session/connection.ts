import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments } from "@tapedeck/shared/time/moment";
import type { ChannelNormalizer } from "../../normalize/normalizer.ts";
import { isLarge } from "../../secrets/ahead/masked-apart.ts";
import type { MaskedFrame } from "../../secrets/pieces.ts";
import type { ChannelStore } from "../frames/channel-store.ts";
import { shaOf } from "../frames/original.ts";
import { type HoldBack, holdBack } from "../frames/replay-sorter.ts";
import type { Fingerprint } from "../own-facts/session-facts.ts";
import type { Spoken } from "./session-match.ts";

/** What `hello` asks for: secrets are masked, or not. */
export type Redact = "on" | "off";

/** A frame as it would be recorded. */
export type Masked = MaskedFrame & { readonly sha: string };

/** A frame on its way from the tap to the log. */
export type HeldFrame = {
  /** Of the item, or of the items that brought its pieces. */
  readonly indexes: readonly bigint[];
  readonly at: Moment;
  readonly moment: Moment | undefined;
  readonly size: number;
  readonly masked: (redact: "on" | "off") => Masked;
  /** To be awaited before `masked`, which takes long for a large frame. */
  readonly prepare: (redact: "on" | "off") => Promise<void>;
};

export function heldFrame(
  { bytes, indexes }: Whole,
  at: Moment,
  { mask, maskApart, momentOf }: FrameReading,
): HeldFrame {
  const known: { on?: Masked; off?: Masked } = {};
  const keep = (redact: "on" | "off", one: MaskedFrame): Masked => {
    const masked = { ...one, sha: shaOf(one.bytes) };
    known[redact] = masked;
    return masked;
  };
  return {
    indexes,
    at,
    moment: momentOf(bytes),
    size: bytes.byteLength,
    async prepare(redact) {
      if (redact === "off" || known.on !== undefined || maskApart === undefined || !isLarge(bytes)) return;
      try {
        keep("on", await maskApart(bytes));
      } catch {
        // Then it is masked here.
      }
    },
    masked(redact) {
      return known[redact] ?? keep(redact, redact === "on" ? mask(bytes) : { bytes, redacted: 0 });
    },
  };
}

type FrameReading = {
  readonly mask: (bytes: Uint8Array) => MaskedFrame;
  readonly maskApart?: ((bytes: Uint8Array) => Promise<MaskedFrame>) | undefined;
  readonly momentOf: (bytes: Uint8Array) => Moment | undefined;
};

/** One channel of a connection. */
export type ConnectionChannel = {
  readonly reading: ChannelNormalizer;
  readonly holdBack: HoldBack<HeldFrame>;
  /** Pieces of a frame that is not complete. */
  partial: { readonly indexes: readonly bigint[]; readonly pieces: readonly Uint8Array[] } | undefined;
  /** Out of the hold-back, but the session is not known yet. */
  waiting: readonly HeldFrame[];
  /** The first piece, or all of the repeat, has come out of the hold-back. */
  ready: boolean;
  store: ChannelStore | undefined;
};

export type Connection = {
  readonly id: string;
  readonly address: string;
  /**
   * Sequence of its upstream.connected when a recorder before this one has recorded frames of it, or may have; else
   * undefined.
   */
  readonly resumedSeq: number | undefined;
  /** Empty until it is known which session it belongs to. */
  session: string;
  /** The session was known before: what was said since then and is not repeated is lost. */
  rejoined: boolean;
  firstFrameAt: Moment | undefined;
  /** How many frames had been looked at when they did not tell the session. */
  undecidedFrames: number;
  readonly channels: Map<string, ConnectionChannel>;
  /** Channels whose frames are looks. */
  readonly looked: Map<string, Pick<ConnectionChannel, "partial">>;
  /** What else happened, to be recorded when the session is known. */
  pending: (() => void)[];
};

export function connectionOf(id: string, address: string, session: string, resumedSeq: number | undefined): Connection {
  return {
    ...{ id, address, session, resumedSeq, rejoined: false, firstFrameAt: undefined, undecidedFrames: 0 },
    ...{ channels: new Map(), looked: new Map(), pending: [] },
  };
}

/** What it says was not heard but read in a file that the upstream has written: another form of the same messages. */
export function isFromFile({ address }: Pick<Connection, "address">): boolean {
  return address.startsWith("file:");
}

export function whenDecided(connection: Connection, run: () => void): void {
  if (connection.session === "") connection.pending.push(run);
  else run();
}

export function runPending(connection: Connection): void {
  const { pending } = connection;
  connection.pending = [];
  for (const run of pending) run();
}

export function connectionChannel(reading: ChannelNormalizer, live: boolean): ConnectionChannel {
  const started = { partial: undefined, waiting: [], ready: live, store: undefined };
  return { reading, holdBack: holdBack<HeldFrame>({ live }), ...started };
}

export type FramePiece = { readonly channel: string; readonly bytes: Uint8Array; readonly more: boolean };

export type Whole = { readonly bytes: Uint8Array; readonly indexes: readonly bigint[] };

/** All the pieces as one frame; undefined while more is to come. Pieces may share an index or have their own. */
export function assemble(
  channel: Pick<ConnectionChannel, "partial">,
  index: bigint,
  piece: Uint8Array,
  more: boolean,
): Whole | undefined {
  const { indexes = [], pieces = [] } = channel.partial ?? {};
  const all = { indexes: [...indexes, index], pieces: [...pieces, piece] };
  channel.partial = more ? all : undefined;
  if (more) return undefined;
  return { bytes: all.pieces.length === 1 ? piece : Buffer.concat(all.pieces), indexes: all.indexes };
}

/** The message with the smallest time of its own. */
export function fingerprintOf(frames: readonly HeldFrame[], redact: "on" | "off"): Fingerprint | undefined {
  let smallest: (HeldFrame & { readonly moment: Moment }) | undefined;
  for (const frame of frames) {
    const { moment } = frame;
    if (moment === undefined || (smallest !== undefined && compareMoments(smallest.moment, moment) <= 0)) continue;
    smallest = { ...frame, moment };
  }
  return smallest && { at: smallest.moment, sha: smallest.masked(redact).sha };
}

/** What was said so far, channel by channel, as it would be recorded with this setting. */
export function spokenBy({ channels }: Connection, redact: "on" | "off"): Map<string, Spoken> {
  const spoken = new Map<string, Spoken>();
  for (const [name, { reading, waiting }] of channels) {
    if (waiting.length === 0) continue;
    const shas = new Set(waiting.map((frame) => frame.masked(redact).sha));
    spoken.set(name, { shas, fingerprint: fingerprintOf(waiting, redact)?.sha, complete: reading.replays });
  }
  return spoken;
}
