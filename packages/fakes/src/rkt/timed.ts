import { randomUUID } from "node:crypto";
import type { Image, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Due, Player } from "./playback.ts";
import type { Items, Poll, Polls } from "./polls.ts";
import type { Kind } from "./recording.ts";

export type TimedOptions = {
  readonly speed: number;
  /** From the start again after the end; otherwise the end stays. */
  readonly loop: boolean;
  /** Between two turns, ms of recorded time. */
  readonly pauseMs: number;
  /** Ms since 1970. */
  readonly now: () => number;
};

export type TimedPlayer = Player & {
  /** The host stands still, and its clock too. */
  readonly pause: () => void;
  readonly resume: () => void;
};

type Turn = {
  readonly number: number;
  /** Ms since the first poll, on the recording's clock; stays at the end while a turn pauses. */
  readonly at: number;
};

/**
 * Each call is told what the recorded one was told at that moment, as if it happened now: times are moved, and in every
 * turn pods have ids of their own. Images keep theirs: they are the hashes of their contents. Recorded answers of other
 * calls are of another time and other ids, so there are none.
 */
export function timedPlayer(polls: Polls, { speed, loop, pauseMs, now }: TimedOptions): TimedPlayer {
  const all = [...polls.pods, ...polls.images];
  const from = Math.min(...all.map(({ at }) => at));
  const length = all.length === 0 ? 0 : Math.max(...all.map(({ at, tookMs }) => at + tookMs)) - from;
  const started = now();
  // Pauses so far, at which moment of all turns (recorded ms) and how long (real ms).
  const pauses: { readonly at: number; readonly ms: number }[] = [];
  let pausedSince: number | undefined;
  let ids = { turn: -1, renamed: new Map<string, string>() };

  function elapsed(): number {
    const paused = pauses.reduce((sum, { ms }) => sum + ms, 0);
    return ((pausedSince ?? now()) - started - paused) * speed;
  }

  function turnNow(): Turn {
    const sinceStart = elapsed();
    const number = loop && length > 0 ? Math.floor(sinceStart / (length + pauseMs)) : 0;
    return { number, at: Math.min(sinceStart - number * (length + pauseMs), length) };
  }

  /** The real time of a recorded one, both in ms since 1970. */
  function realTime(recorded: number, turn: Turn): number {
    const sinceStart = recorded - from + turn.number * (length + pauseMs);
    const paused = pauses.filter(({ at }) => at < sinceStart).reduce((sum, { ms }) => sum + ms, 0);
    return started + sinceStart / speed + paused;
  }

  function nanos(recorded: bigint, turn: Turn): bigint {
    if (recorded === 0n) return 0n;
    return BigInt(Math.round(realTime(Number(recorded) / 1e6, turn) * 1e3)) * 1_000n;
  }

  function renamed(id: string, turn: Turn): string {
    if (ids.turn !== turn.number) ids = { turn: turn.number, renamed: new Map() };
    const name = ids.renamed.get(id) ?? randomUUID();
    ids.renamed.set(id, name);
    return name;
  }

  const asNow: { readonly [K in Kind]: (item: Items[K], turn: Turn) => Items[K] } = {
    pods: (pod: Pod, turn) => {
      const id = renamed(pod.id, turn);
      // systemd's names of units have the id with its hyphens escaped.
      const cgroup = pod.cgroup.replace(escaped(pod.id), escaped(id)).replace(pod.id, id);
      const times = {
        created_at: nanos(pod.created_at, turn),
        started_at: nanos(pod.started_at, turn),
        gc_marked_at: nanos(pod.gc_marked_at, turn),
      };
      return { ...pod, ...times, id, cgroup };
    },
    images: (image: Image, turn) => {
      const seconds = Math.floor(realTime(Number(image.import_timestamp) * 1_000, turn) / 1_000);
      return { ...image, import_timestamp: BigInt(seconds) };
    },
  };

  function pollNow<K extends Kind>(kind: K, poll: Poll<K>, turn: Turn): Poll<K> {
    const { recorded: _, ...rest } = poll;
    const items = poll.items.map((item) => asNow[kind](item, turn));
    // The real one sorts pods by id; its images have no order.
    return { ...rest, items: kind === "pods" ? items.toSorted((a, b) => (a.id < b.id ? -1 : 1)) : items };
  }

  /** The last one that began. One that only ran into its client's deadline says nothing of what came after. */
  function inForce<K extends Kind>(rows: readonly Poll<K>[], { at }: Turn): Poll<K> | undefined {
    const begun = rows.filter((poll) => poll.at - from <= at && !(isSlow(poll) && endOf(poll) <= at));
    const latest = begun.reduce<Poll<K> | undefined>((a, b) => (a !== undefined && a.at > b.at ? a : b), undefined);
    return latest ?? rows.find((poll) => !isSlow(poll));
  }

  const endOf = (poll: Poll<Kind>) => poll.at - from + poll.tookMs;

  return {
    played: { pods: 0, images: 0 },
    upcoming: () => undefined,
    recorded: () => undefined,
    take<K extends Kind>(kind: K): Due<K> | undefined {
      const turn = turnNow();
      const poll = inForce(polls[kind], turn);
      if (poll === undefined) return undefined;
      const left = endOf(poll) - Math.max(turn.at, poll.at - from);
      return { poll: pollNow(kind, poll, turn), waitMs: Math.max(0, left) / speed, again: isSlow(poll) };
    },
    shown<K extends Kind>(kind: K): Poll<K> | undefined {
      const turn = turnNow();
      const poll = inForce<K>(
        polls[kind].filter(({ error }) => error === undefined),
        turn,
      );
      return poll && pollNow(kind, poll, turn);
    },
    pause: () => {
      pausedSince ??= now();
    },
    resume: () => {
      if (pausedSince === undefined) return;
      pauses.push({ at: elapsed(), ms: now() - pausedSince });
      pausedSince = undefined;
    },
  };
}

function isSlow({ error }: Poll<Kind>): boolean {
  return error?.code === deadlineExceeded;
}

const deadlineExceeded = 4;

function escaped(id: string): string {
  return id.replaceAll("-", "\\x2d");
}
