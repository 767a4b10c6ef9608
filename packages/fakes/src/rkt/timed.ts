import { randomUUID } from "node:crypto";
import type { Image, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Due, Playback } from "./playback.ts";
import type { Items, Poll, Polls } from "./polls.ts";
import type { InventoryKind } from "./recording.ts";

export type TimedOptions = {
  readonly speed: number;
  /** From the start again after the end; otherwise the end stays. */
  readonly loop: boolean;
  /** Between two turns, ms of recorded time. */
  readonly pauseMs: number;
  /** Ms since 1970. */
  readonly now: () => number;
};

type Turn = {
  readonly number: number;
  /** Ms since the first poll, on the recording's clock; stays at the end while a turn pauses. */
  readonly at: number;
};

/**
 * Gives each call the poll of the recorded call at the same time, as if it happened now: times are moved, and pods have
 * their own ids in every turn. Images keep their ids, which are the hashes of their contents. Recorded answers of other
 * calls belong to other times and ids, so there are none.
 */
export class TimedPlayback implements Playback {
  readonly played = { pods: 0, images: 0 };
  readonly #polls: Polls;
  readonly #options: TimedOptions;
  /** The recorded time of the first poll. */
  readonly #from: number;
  readonly #lengthMs: number;
  readonly #startedAt: number;
  /** Pauses so far: at which time of all turns (recorded ms) and how long (real ms). */
  readonly #pauses: { readonly at: number; readonly ms: number }[] = [];
  #pausedSince: number | undefined;
  #ids = { turn: -1, newIds: new Map<string, string>() };

  constructor(polls: Polls, options: TimedOptions) {
    const all = [...polls.pods, ...polls.images];
    this.#polls = polls;
    this.#options = options;
    this.#from = Math.min(...all.map(({ at }) => at));
    this.#lengthMs = all.length === 0 ? 0 : Math.max(...all.map(({ at, tookMs }) => at + tookMs)) - this.#from;
    this.#startedAt = options.now();
  }

  upcoming(): undefined {
    return undefined;
  }

  recorded(): undefined {
    return undefined;
  }

  take<K extends InventoryKind>(kind: K): Due<K> | undefined {
    const turn = this.#turnNow();
    const poll = this.#inForce(this.#polls[kind], turn);
    if (poll === undefined) return undefined;
    const left = this.#endOf(poll) - Math.max(turn.at, poll.at - this.#from);
    const waitMs = Math.max(0, left) / this.#options.speed;
    return { poll: this.#pollNow(kind, poll, turn), waitMs, again: isSlow(poll) };
  }

  shown<K extends InventoryKind>(kind: K): Poll<K> | undefined {
    const turn = this.#turnNow();
    const rows: readonly Poll<K>[] = this.#polls[kind];
    const poll = this.#inForce<K>(
      rows.filter(({ error }) => error === undefined),
      turn,
    );
    return poll && this.#pollNow(kind, poll, turn);
  }

  /** Stops the host and its clock. */
  pause(): void {
    this.#pausedSince ??= this.#options.now();
  }

  resume(): void {
    if (this.#pausedSince === undefined) return;
    this.#pauses.push({ at: this.#elapsed(), ms: this.#options.now() - this.#pausedSince });
    this.#pausedSince = undefined;
  }

  #elapsed(): number {
    const { now, speed } = this.#options;
    const paused = this.#pauses.reduce((sum, { ms }) => sum + ms, 0);
    return ((this.#pausedSince ?? now()) - this.#startedAt - paused) * speed;
  }

  get #turnMs(): number {
    return this.#lengthMs + this.#options.pauseMs;
  }

  #turnNow(): Turn {
    const sinceStart = this.#elapsed();
    const number = this.#options.loop && this.#lengthMs > 0 ? Math.floor(sinceStart / this.#turnMs) : 0;
    return { number, at: Math.min(sinceStart - number * this.#turnMs, this.#lengthMs) };
  }

  /** The real time of a recorded one, both in ms since 1970. */
  #realTime(recorded: number, turn: Turn): number {
    const sinceStart = recorded - this.#from + turn.number * this.#turnMs;
    const paused = this.#pauses.filter(({ at }) => at < sinceStart).reduce((sum, { ms }) => sum + ms, 0);
    return this.#startedAt + sinceStart / this.#options.speed + paused;
  }

  #nanos(recorded: bigint, turn: Turn): bigint {
    if (recorded === 0n) return 0n;
    return BigInt(Math.round(this.#realTime(Number(recorded) / 1e6, turn) * 1e3)) * 1_000n;
  }

  #newId(id: string, turn: Turn): string {
    if (this.#ids.turn !== turn.number) this.#ids = { turn: turn.number, newIds: new Map() };
    const newId = this.#ids.newIds.get(id) ?? randomUUID();
    this.#ids.newIds.set(id, newId);
    return newId;
  }

  readonly #asNow: { readonly [K in InventoryKind]: (item: Items[K], turn: Turn) => Items[K] } = {
    pods: (pod: Pod, turn) => {
      const id = this.#newId(pod.id, turn);
      // systemd's unit names have the id with its hyphens escaped.
      const cgroup = pod.cgroup.replace(escaped(pod.id), escaped(id)).replace(pod.id, id);
      const times = {
        created_at: this.#nanos(pod.created_at, turn),
        started_at: this.#nanos(pod.started_at, turn),
        gc_marked_at: this.#nanos(pod.gc_marked_at, turn),
      };
      return { ...pod, ...times, id, cgroup };
    },
    images: (image: Image, turn) => {
      const seconds = Math.floor(this.#realTime(Number(image.import_timestamp) * 1_000, turn) / 1_000);
      return { ...image, import_timestamp: BigInt(seconds) };
    },
  };

  #pollNow<K extends InventoryKind>(kind: K, poll: Poll<K>, turn: Turn): Poll<K> {
    const { recorded: _, ...rest } = poll;
    const items = poll.items.map((item) => this.#asNow[kind](item, turn));
    // The real server sorts pods by id; its images have no order.
    return { ...rest, items: kind === "pods" ? items.toSorted((a, b) => (a.id < b.id ? -1 : 1)) : items };
  }

  /** The last poll that has begun. A poll that ran into its client's deadline holds only until its end. */
  #inForce<K extends InventoryKind>(rows: readonly Poll<K>[], { at }: Turn): Poll<K> | undefined {
    const begun = rows.filter((poll) => poll.at - this.#from <= at && !(isSlow(poll) && this.#endOf(poll) <= at));
    const latest = begun.reduce<Poll<K> | undefined>((a, b) => (a !== undefined && a.at > b.at ? a : b), undefined);
    return latest ?? rows.find((poll) => !isSlow(poll));
  }

  #endOf(poll: Poll<InventoryKind>): number {
    return poll.at - this.#from + poll.tookMs;
  }
}

function isSlow({ error }: Poll<InventoryKind>): boolean {
  return error?.code === deadlineExceeded;
}

const deadlineExceeded = 4;

function escaped(id: string): string {
  return id.replaceAll("-", "\\x2d");
}
