import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { plainLine } from "../../../display/plain-line.ts";
import type { DemoReceiver } from "./receiver.ts";

/** Takes messages as an incoming webhook of Slack does, and prints each in a line. */
export async function startSlackReceiver(printLine: (line: string) => void): Promise<DemoReceiver> {
  const server = createServer((request, response) => {
    request.toArray().then(
      (chunks: Buffer[]) => {
        const { text } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly text: string };
        printLine(`slack: ${text.split("\n").map(plainLine).join(" | ")}`);
        response.writeHead(200, { "content-type": "text/plain" }).end("ok");
      },
      () => response.writeHead(400).end("invalid_payload"),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    name: "slack",
    sink: { target: `http://${host}/services/demo`, format: "slack" },
    host,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
