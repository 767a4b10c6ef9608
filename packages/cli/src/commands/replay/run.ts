import { counted } from "../../display/counted.ts";
import { print } from "../../display/output.ts";
import { play } from "./play.ts";
import { recordedSession } from "./recorded-session.ts";
import { serveTape } from "./serve.ts";
import { tapeOf } from "./tape.ts";

export type ReplayOptions = {
  readonly source?: string;
  readonly url?: string;
  readonly rpcPort: number;
  readonly rpcHttpPort: number;
  readonly speed: number;
  readonly longestPause?: number;
  readonly exit?: boolean;
};

/** Serves a recorded session as if its Skaffold ran here, until Ctrl-C. */
export async function replay(session: string | undefined, options: ReplayOptions): Promise<void> {
  const { source, url, rpcPort, rpcHttpPort, speed, longestPause, exit = false } = options;
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort());
  const tape = tapeOf(await recordedSession({ session, source, url }));
  const host = "127.0.0.1";
  await using served = await serveTape(tape, { grpc: { host, port: rpcPort }, http: { host, port: rpcHttpPort } });
  const name = tape.source.split("/").slice(1, 3).join("/");
  print(
    `replaying session ${tape.session} of ${name} (${counted(tape.events.length, "event")}) as Skaffold served it:`,
  );
  print(`  gRPC ${served.grpc}\n  HTTP http://${served.http}`);
  await play(tape, { speed, longestMs: longestPause ?? Number.POSITIVE_INFINITY }, stop.signal);
  if (stop.signal.aborted || exit) return;
  print("the replay has reached the end of the session, which is served until Ctrl-C");
  // A listening server keeps this process alive.
  await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve()));
}
