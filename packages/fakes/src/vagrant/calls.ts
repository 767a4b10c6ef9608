export type FakeCall = {
  /** The name as on the wire: "_ListJobs". */
  readonly rpc: string;
  /** The connection: "127.0.0.1:40000". */
  readonly peer: string;
  /** Empty for streams of the client. */
  readonly request: Buffer;
  /** The client's metadata: "client-api-protocol" and so on. */
  readonly metadata: Readonly<Record<string, unknown>>;
};

/** Methods whose calls get no answer for a while. */
export class CallGates {
  readonly #held = new Map<string, PromiseWithResolvers<void>>();

  /** Holds the calls of this method until the returned function is called. */
  readonly hold = (rpc: string): (() => void) => {
    const opened = Promise.withResolvers<void>();
    this.#held.set(rpc, opened);
    return () => {
      if (this.#held.get(rpc) === opened) this.#held.delete(rpc);
      opened.resolve();
    };
  };

  /** Resolves when the method is not held. */
  async pass(rpc: string): Promise<void> {
    for (let gate = this.#held.get(rpc); gate !== undefined; gate = this.#held.get(rpc)) await gate.promise;
  }
}
