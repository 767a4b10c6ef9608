export type FakeCall = {
  /** As on the wire: "_ListJobs". */
  readonly rpc: string;
  /** The connection: "127.0.0.1:40000". */
  readonly peer: string;
  /** Empty for streams of the client. */
  readonly request: Buffer;
  /** What a client said beside it: "client-api-protocol" and so on. */
  readonly metadata: Readonly<Record<string, unknown>>;
};

export type CallCount = {
  readonly made: number;
  readonly inFlight: number;
  /** The most that were in flight at the same time. */
  readonly mostInFlight: number;
};

export type Calls = {
  readonly count: (rpc: string) => CallCount;
  /** The newest 1,000, in the order of arrival. */
  readonly newest: readonly FakeCall[];
  /** Counts a call in; the function returned counts it out, once. */
  readonly begin: (call: FakeCall) => () => void;
  /** Calls of this method get no answer before the function returned is called. */
  readonly hold: (rpc: string) => () => void;
  /** Resolves when the method is not held. */
  readonly pass: (rpc: string) => Promise<void>;
};

/** A demo runs for days, so not all of them. */
const remembered = 1_000;

export function makeCalls(): Calls {
  const counts = new Map<string, { made: number; inFlight: number; mostInFlight: number }>();
  const newest: FakeCall[] = [];
  const held = new Map<string, PromiseWithResolvers<void>>();
  return {
    count: (rpc) => counts.get(rpc) ?? { made: 0, inFlight: 0, mostInFlight: 0 },
    newest,
    begin(call) {
      const count = counts.get(call.rpc) ?? { made: 0, inFlight: 0, mostInFlight: 0 };
      counts.set(call.rpc, count);
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
    hold(rpc) {
      const opened = Promise.withResolvers<void>();
      held.set(rpc, opened);
      return () => {
        if (held.get(rpc) === opened) held.delete(rpc);
        opened.resolve();
      };
    },
    async pass(rpc) {
      for (let gate = held.get(rpc); gate !== undefined; gate = held.get(rpc)) await gate.promise;
    },
  };
}
