import type { Poll, Polls } from "./polls.ts";
import type { Answer, Kind, Recording, UnaryRpc } from "./recording.ts";

/** How a recording is played: which of its polls answers a call. */
export type Player = {
  /** What the next call from there is told; this moves a stepped player on. Undefined: nothing of it was recorded. */
  readonly take: <K extends Kind>(kind: K, peer: string) => Due<K> | undefined;
  /** The host as it was told last; what InspectPod and InspectImage look at. */
  readonly shown: <K extends Kind>(kind: K) => Poll<K> | undefined;
  /** The number of the poll that `take` would give, from 1; undefined where that is one that was told already. */
  readonly upcoming: (kind: Kind, peer: string) => number | undefined;
  /** Polls told so far, each counted once; a timed player counts none. */
  readonly played: { readonly [K in Kind]: number };
  /** The recorded answer to a request that is no poll, where there is one that fits this moment. */
  readonly recorded: (rpc: UnaryRpc, request: Buffer) => Answer | undefined;
};

export type Due<K extends Kind> = {
  readonly poll: Poll<K>;
  readonly waitMs: number;
  /** After the wait something else is due: this poll says only that the server was slow. */
  readonly again?: boolean;
};

/** Recorded time per real time, or without any waiting. */
export type Speed = number | "max";

export type SteppedOptions = {
  readonly speed: Speed;
  /** What a new connection is told first is what the one before was told last. */
  readonly repeatOnReconnect: boolean;
};

/** Each call is told the next poll, whenever it comes; after the last one the last one again. */
export function steppedPlayer(recording: Recording, polls: Polls, options: SteppedOptions): Player {
  const played = { pods: 0, images: 0 };
  const peers: { [K in Kind]?: string } = {};
  // The place of the last poll that was told and no error.
  const told: { [K in Kind]?: number } = {};
  const asked = new Map<string, number>();

  function isRepeat(kind: Kind, peer: string): boolean {
    const cameBack = peers[kind] !== undefined && peers[kind] !== peer;
    return options.repeatOnReconnect && cameBack && told[kind] !== undefined;
  }

  function lastTold<K extends Kind>(kind: K): Poll<K> | undefined {
    const index = told[kind];
    return index === undefined ? undefined : polls[kind][index];
  }

  function shown<K extends Kind>(kind: K): Poll<K> | undefined {
    return lastTold(kind) ?? polls[kind].find(({ error }) => error === undefined);
  }

  /** What was asked between the poll that was told last and the next one belongs to this moment. */
  function recordedNow(rpc: UnaryRpc) {
    const kind = kindOf[rpc];
    const rows = recording.rows.filter((row) => row.kind === "unary").filter((row) => row.rpc === rpc);
    if (kind === undefined) return rows;
    const after = lastTold(kind)?.n ?? -1;
    const before = polls[kind][played[kind]]?.n ?? Number.POSITIVE_INFINITY;
    return rows.filter(({ n }) => n > after && n < before);
  }

  return {
    played,
    shown,
    upcoming: (kind, peer) => (isRepeat(kind, peer) ? undefined : Math.min(played[kind] + 1, polls[kind].length)),
    take<K extends Kind>(kind: K, peer: string): Due<K> | undefined {
      const repeated = isRepeat(kind, peer) ? lastTold(kind) : undefined;
      peers[kind] = peer;
      const index = Math.min(played[kind], polls[kind].length - 1);
      const poll = repeated ?? polls[kind][index];
      if (poll === undefined) return undefined;
      if (repeated === undefined) {
        played[kind] = index + 1;
        if (poll.error === undefined) told[kind] = index;
      }
      return { poll, waitMs: options.speed === "max" ? 0 : poll.tookMs / options.speed };
    },
    recorded(rpc, request) {
      const rows = recordedNow(rpc).filter((row) => row.request.equals(request));
      const first = rows[0];
      if (first === undefined) return undefined;
      const key = `${rpc} ${first.n}`;
      const count = asked.get(key) ?? 0;
      asked.set(key, count + 1);
      return rows[count] ?? rows.at(-1);
    },
  };
}

/** Whose polls say which moment it is; filtered lists hold for all moments. */
const kindOf: { readonly [R in UnaryRpc]?: Kind } = { InspectPod: "pods", InspectImage: "images" };
