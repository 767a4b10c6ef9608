import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { remoteMaintenance } from "./remote.ts";

const { signal } = new AbortController();
const line = (removed: number, state = "removing") =>
  `${JSON.stringify({ type: "progress", source: "acme/alice/shop/skaffold", state, events: 4, removed })}\n`;

/** A gateway that gives each request the next answer. */
async function gateway(answers: readonly ((response: ServerResponse) => void)[]): Promise<string> {
  const left = [...answers];
  const server = createServer((_, response) => left.shift()?.(response)).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const cutOff = (text: string) => (response: ServerResponse) => {
  response.writeHead(200);
  response.write(text, () => response.destroy());
};

const refused = (status: number) => (response: ServerResponse) => {
  response.writeHead(status).end('{"error":{"code":"not_ready","message":"the log is unavailable"}}');
};

it("the progress of an erasure is asked for again when its connection breaks off", async () => {
  const whole = (response: ServerResponse) => response.end(`${line(4, "done")}{"type":"complete"}\n`);
  const url = await gateway([cutOff(line(1)), refused(503), cutOff(line(2)), whole]);
  const received = await Array.fromAsync(remoteMaintenance(url).erase("01KE3M9Z6Q4W8T2V5X7Y9A1B30", signal));
  expect(received.map(({ removed }) => removed)).toEqual([1, 2, 4]);
});

it("an erasure that was never heard of is not asked for again", async () => {
  const url = await gateway([refused(503)]);
  const erasing = remoteMaintenance(url).erase("01KE3M9Z6Q4W8T2V5X7Y9A1B30", signal);
  await expect(Array.fromAsync(erasing)).rejects.toMatchObject({ message: "the log is unavailable" });
});
