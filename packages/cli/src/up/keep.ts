import { backoff, delay } from "@tapedeck/shared/sync/delay";

export type Kept<Server> = AsyncDisposable & {
  readonly current: () => Server;
  /** Stops it; it is started again at once. */
  readonly restart: () => Promise<void>;
};

type Server = { readonly port: number; readonly exited: Promise<unknown>; readonly stop: () => Promise<void> };

/**
 * Starts a server, and restarts it on the same port whenever it exits, until it is disposed of. `say` gets one line for
 * people.
 */
export async function keep<S extends Server>(
  name: string,
  port: number,
  start: (port: number) => Promise<S>,
  say: (line: string) => void,
): Promise<Kept<S>> {
  let current = await start(port);
  const { port: kept } = current;
  const stopping = new AbortController();
  let isAsked = false;

  async function supervise(): Promise<void> {
    const wait = backoff(100, 5_000);
    while (!stopping.signal.aborted) {
      await current.exited;
      if (stopping.signal.aborted) return;
      if (!isAsked) say(`${name} exited unexpectedly and is restarted`);
      isAsked = false;
      for (let again = false; !again && !stopping.signal.aborted; ) {
        await delay(wait.next(), stopping.signal);
        if (stopping.signal.aborted) return;
        try {
          current = await start(kept);
          again = true;
        } catch (error) {
          say(`${name}: ${error instanceof Error ? error.message : error}`);
        }
      }
      wait.reset();
    }
  }

  const over = supervise();
  return {
    current: () => current,
    restart() {
      isAsked = true;
      return current.stop();
    },
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await current.stop();
      await over;
      // It may have been on its way up again: a server that gets our signal, too, ends before we ask it to.
      await current.stop();
    },
  };
}
