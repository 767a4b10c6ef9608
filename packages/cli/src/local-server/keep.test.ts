import { expect, it } from "vitest";
import { keep } from "./keep.ts";

/** Servers that end when they are asked to, each start of which waits until it is let. */
function servers() {
  const stopped: number[] = [];
  const starts: PromiseWithResolvers<void>[] = [];
  const requests = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const exits: (() => void)[] = [];
  const start = async (port: number) => {
    const number = starts.push(Promise.withResolvers<void>()) - 1;
    requests[number]?.resolve();
    await starts[number]?.promise;
    const { promise: exited, resolve: exit } = Promise.withResolvers<void>();
    exits.push(exit);
    const stop = async () => {
      stopped.push(number);
      exit();
    };
    return { port, exited, stop };
  };
  return { start, requests: requests, let: (number: number) => starts[number]?.resolve(), exits, stopped };
}

it("stops what it was starting again when it is disposed of", async () => {
  const { start, requests, let: letStart, exits, stopped } = servers();
  const keeping = keep("NATS", 7042, start, () => {});
  letStart(0);
  const kept = await keeping;
  exits[0]?.();
  await requests[1].promise;
  const disposed = kept[Symbol.asyncDispose]();
  letStart(1);
  await disposed;
  expect(stopped).toContain(1);
});
