import type { Poll, Polls } from "./polls.ts";
import type { InventoryKind, RecordedAnswer, RecordedUpstream, UnaryRpc } from "./recording.ts";

/** Decides which poll of a recording answers a call. */
export type Playback = {
  /** The poll for the next call from a peer. Moves a stepped playback on. Undefined if nothing of the kind was recorded. */
  take<K extends InventoryKind>(kind: K, peer: string): Due<K> | undefined;
  /** The poll that was given last, from which InspectPod and InspectImage are answered. */
  shown<K extends InventoryKind>(kind: K): Poll<K> | undefined;
  /** The number of the poll that `take` would give, from 1; undefined if it would repeat one. */
  upcoming(kind: InventoryKind, peer: string): number | undefined;
  /** The polls given so far, each counted once; a timed playback counts none. */
  readonly played: { readonly [K in InventoryKind]: number };
  /** The recorded answer to a request other than a poll, if there is one for this position. */
  recorded(rpc: UnaryRpc, request: Buffer): RecordedAnswer | undefined;
};

export type Due<K extends InventoryKind> = {
  readonly poll: Poll<K>;
  readonly waitMs: number;
  /** After the wait another poll is due: this one only shows that the server was slow. */
  readonly again?: boolean;
};

/** Recorded time per real time, or without any waiting. */
export type Speed = number | "max";

export type SteppedOptions = {
  readonly speed: Speed;
  /** A new connection first gets the poll that the one before got last. */
  readonly repeatOnReconnect: boolean;
};

/** Gives each call the next poll, whenever the call comes, and repeats the last one at the end. */
export class SteppedPlayback implements Playback {
  readonly played = { pods: 0, images: 0 };
  readonly #recording: RecordedUpstream;
  readonly #polls: Polls;
  readonly #options: SteppedOptions;
  readonly #peers: { [K in InventoryKind]?: string } = {};
  /** The index of the last poll that was given and is not an error. */
  readonly #lastGiven: { [K in InventoryKind]?: number } = {};
  readonly #requested = new Map<string, number>();

  constructor(recording: RecordedUpstream, polls: Polls, options: SteppedOptions) {
    this.#recording = recording;
    this.#polls = polls;
    this.#options = options;
  }

  take<K extends InventoryKind>(kind: K, peer: string): Due<K> | undefined {
    const repeated = this.#isRepeat(kind, peer) ? this.#last(kind) : undefined;
    this.#peers[kind] = peer;
    const index = Math.min(this.played[kind], this.#polls[kind].length - 1);
    const poll = repeated ?? this.#polls[kind][index];
    if (poll === undefined) return undefined;
    if (repeated === undefined) {
      this.played[kind] = index + 1;
      if (poll.error === undefined) this.#lastGiven[kind] = index;
    }
    const { speed } = this.#options;
    return { poll, waitMs: speed === "max" ? 0 : poll.tookMs / speed };
  }

  shown<K extends InventoryKind>(kind: K): Poll<K> | undefined {
    return this.#last(kind) ?? this.#polls[kind].find(({ error }) => error === undefined);
  }

  upcoming(kind: InventoryKind, peer: string): number | undefined {
    return this.#isRepeat(kind, peer) ? undefined : Math.min(this.played[kind] + 1, this.#polls[kind].length);
  }

  recorded(rpc: UnaryRpc, request: Buffer): RecordedAnswer | undefined {
    const rows = this.#rowsNow(rpc).filter((row) => row.request.equals(request));
    const [first] = rows;
    if (first === undefined) return undefined;
    const key = `${rpc} ${first.n}`;
    const count = this.#requested.get(key) ?? 0;
    this.#requested.set(key, count + 1);
    return rows[count] ?? rows.at(-1);
  }

  #isRepeat(kind: InventoryKind, peer: string): boolean {
    const hasReconnected = this.#peers[kind] !== undefined && this.#peers[kind] !== peer;
    return this.#options.repeatOnReconnect && hasReconnected && this.#lastGiven[kind] !== undefined;
  }

  #last<K extends InventoryKind>(kind: K): Poll<K> | undefined {
    const index = this.#lastGiven[kind];
    return index === undefined ? undefined : this.#polls[kind][index];
  }

  /** Requests between the poll that was given last and the next one belong to this position. */
  #rowsNow(rpc: UnaryRpc) {
    const kind = kindOf[rpc];
    const rows = this.#recording.rows.filter((row) => row.kind === "unary").filter((row) => row.rpc === rpc);
    if (kind === undefined) return rows;
    const after = this.#last(kind)?.n ?? -1;
    const before = this.#polls[kind][this.played[kind]]?.n ?? Number.POSITIVE_INFINITY;
    return rows.filter(({ n }) => n > after && n < before);
  }
}

/** The kind whose polls give the position; filtered lists hold for all positions. */
const kindOf: { readonly [R in UnaryRpc]?: InventoryKind } = { InspectPod: "pods", InspectImage: "images" };
