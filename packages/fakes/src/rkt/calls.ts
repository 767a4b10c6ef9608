import type { CallCount, CallCounts } from "../call-counts.ts";
import { type InventoryKind, type StreamRpc, streamRpcs, type UnaryRpc, unaryRpcs } from "./recording.ts";

export type Rpc = UnaryRpc | StreamRpc;

export type FakeCall = {
  readonly rpc: Rpc;
  /** The connection: "127.0.0.1:40000". */
  readonly peer: string;
  readonly request: Buffer;
};

/** The live counts of all methods. */
export function countsOfAll(calls: CallCounts<FakeCall>): { readonly [R in Rpc]: CallCount } {
  const all = [...unaryRpcs, ...streamRpcs].map((rpc) => [rpc, calls.of(rpc)] as const);
  return Object.fromEntries(all) as { [R in Rpc]: CallCount };
}

export type Gates = {
  /**
   * From now on the n-th poll of the recording (from 1), or every one, is not answered before the function returned is
   * called. A client that leaves in the meantime has taken nothing.
   */
  readonly hold: (kind: InventoryKind, n?: number) => () => void;
  /** Resolves when what comes next is not held, or the client has left. */
  readonly pass: (kind: InventoryKind, upcoming: () => number | undefined, left: AbortSignal) => Promise<void>;
};

type Gate = {
  readonly kind: InventoryKind;
  readonly n: number | undefined;
  readonly opened: PromiseWithResolvers<void>;
};

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
