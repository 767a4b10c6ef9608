import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { withinTime } from "./within-time.ts";

/** Two ends of a connection. */
async function connected() {
  const cleanup = new AsyncDisposableStack();
  const server = createServer().listen(0, "127.0.0.1");
  cleanup.defer(() => void server.close());
  await once(server, "listening");
  const near = connect(server.address() as { readonly port: number });
  const [far] = (await once(server, "connection")) as [Socket];
  for (const end of [near, far]) cleanup.defer(() => void end.destroy());
  if (near.connecting) await once(near, "connect");
  return { near, far, [Symbol.asyncDispose]: () => cleanup.disposeAsync() };
}

/** Holds this process up. */
function holdUp(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

it("a result that came while the process was held up has come in time", async () => {
  await using ends = await connected();
  const got = withinTime(once(ends.far, "data"), 20);
  ends.near.write("item");
  holdUp(100);
  expect(String(await got)).toBe("item");
});

it("undefined is the answer when nothing comes", async () => {
  await using ends = await connected();
  const got = withinTime(once(ends.far, "data"), 20);
  holdUp(100);
  expect(await got).toBeUndefined();
});

it("a failure in time is passed on", async () => {
  await expect(withinTime(Promise.reject(new Error("no")), 1_000)).rejects.toThrow("no");
});
