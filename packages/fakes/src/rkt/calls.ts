import { type Kind, type StreamRpc, streamRpcs, type UnaryRpc, unaryRpcs } from "./recording.ts";

export type Rpc = UnaryRpc | StreamRpc;

export type FakeCall = {
  readonly rpc: Rpc;
  /** The connection: "127.0.0.1:40000". */
  readonly peer: string;
  readonly request: Buffer;
};

export type CallCount = {
  readonly made: number;
  readonly inFlight: number;
  /** The most that were in flight at the same time. */
  readonly mostInFlight: number;
};

export type Calls = {
  readonly counts: { readonly [R in Rpc]: CallCount };
  /** The newest calls, in the order of arrival. */
  readonly newest: readonly FakeCall[];
  /** Counts a call in; the function returned counts it out, once. */
  readonly begin: (call: FakeCall) => () => void;
};

/** A demo runs for days, so not all of them. */
const remembered = 1_000;

export function callCounts(): Calls {
  const all = [...unaryRpcs, ...streamRpcs].map((rpc) => [rpc, { made: 0, inFlight: 0, mostInFlight: 0 }] as const);
  const counts = Object.fromEntries(all) as { [R in Rpc]: { made: number; inFlight: number; mostInFlight: number } };
  const newest: FakeCall[] = [];
  return {
    counts,
    newest,
    begin(call) {
      const count = counts[call.rpc];
      count.made++;
      count.inFlight++;
      count.mostInFlight = Math.max(count.mostInFlight, count.inFlight);
      if (newest.push(call) > remembered) newest.shift();
      let isOver = false;
      return () => {
        if (!isOver) count.inFlight--;
        isOver = true;
      };
    },
  };
}

export type Gates = {
  /**
   * From now on the n-th poll of the recording (from 1), or every one, is not answered before the function returned is
   * called. A client that leaves in the meantime has taken nothing.
   */
  readonly hold: (kind: Kind, n?: number) => () => void;
  /** Resolves when what comes next is not held, or the client has left. */
  readonly pass: (kind: Kind, upcoming: () => number | undefined, left: AbortSignal) => Promise<void>;
};

type Gate = { readonly kind: Kind; readonly n: number | undefined; readonly opened: PromiseWithResolvers<void> };

export function gates(): Gates {
  const held = new Set<Gate>();
  return {
    hold(kind, n) {
      const gate = { kind, n, opened: Promise.withResolvers<void>() };
      held.add(gate);
      return () => {
        held.delete(gate);
        gate.opened.resolve();
      };
    },
    async pass(kind, upcoming, left) {
      const leaving = Promise.withResolvers<void>();
      left.addEventListener("abort", () => leaving.resolve());
      while (!left.aborted) {
        const n = upcoming();
        const gate = [...held].find((each) => each.kind === kind && (each.n === undefined || each.n === n));
        if (gate === undefined) return;
        await Promise.race([gate.opened.promise, leaving.promise]);
      }
    },
  };
}
