import type { RecordedUpstream } from "@tapedeck/fakes/rkt/recording";
import { type StackHost, startStack } from "../stack/stack.ts";
import { rktClient } from "./client.ts";
import { kinds, settled, startRktHost } from "./host.ts";

/** Starts a host with all of Tapedeck on it. */
export async function recordedHost(recording: RecordedUpstream, settings: Readonly<Record<string, string>> = {}) {
  await using cleanup = new AsyncDisposableStack();
  const host = cleanup.use(await startRktHost(recording));
  const source: StackHost = { address: host.fake.address, interval: "10ms", redact: "off", timeout: "1h", ...settings };
  const stack = cleanup.use(await startStack({ rkt: [source] }));
  const client = cleanup.use(rktClient(stack.grpc));
  const owned = cleanup.move();
  return {
    host,
    stack,
    client,
    /** Plays on, and waits until it is recorded. */
    async play(polls: Partial<Record<(typeof kinds)[number], number>>) {
      for (const kind of kinds) host.playTo(kind, polls[kind] ?? 0);
      await Promise.all(kinds.map((kind) => settled(host, stack, kind)));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export type RecordedHost = Awaited<ReturnType<typeof recordedHost>>;
