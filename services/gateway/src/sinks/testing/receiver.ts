import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { isEmptyExport } from "./received-spans.ts";

export type ReceivedEvent = {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly data: { readonly ordinal: number };
};

export type ReceivedRequest = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly bytes: Buffer;
  /** None, if it is not that of a webhook. */
  readonly events: readonly ReceivedEvent[];
};

export type ReceiverAnswer = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** The receiver has the events, and dies before it answers. */
  readonly isLost?: true;
  /** Its body goes on for ever, or breaks off. */
  readonly endless?: "open" | "broken";
};

/** A receiver of webhooks on this machine. */
export type Receiver = AsyncDisposable & {
  readonly url: string;
  readonly port: number;
  /** Every request, also those that were not accepted; without those of tests. */
  readonly requests: readonly ReceivedRequest[];
  readonly tests: readonly ReceivedRequest[];
  /** How many connections were made. */
  readonly connections: number;
  /** The events of all requests that were accepted, in the order in which they came. */
  readonly accepted: readonly ReceivedEvent[];
  /** Those of one path. */
  acceptedAt(path: string): readonly ReceivedEvent[];
  /** Decides the answer; undefined: none at all. By default everything is accepted. */
  answer: (request: ReceivedRequest) => ReceiverAnswer | undefined;
  /** Cuts all connections, whatever is under way, and takes no more until it starts again. */
  kill(): Promise<void>;
  start(): Promise<void>;
};

export async function startReceiver(): Promise<Receiver> {
  const port = await ownPort();
  const requests: ReceivedRequest[] = [];
  const tests: ReceivedRequest[] = [];
  const accepted: ReceivedEvent[] = [];
  const byPath = new Map<string, ReceivedEvent[]>();
  let server: Server | undefined;
  let connections = 0;

  async function take(request: ReceivedRequest, response: ServerResponse): Promise<void> {
    const isTest = request.events[0]?.type === "dev.tapedeck.sink.test" || isEmptyExport(request);
    (isTest ? tests : requests).push(request);
    const answer = receiver.answer(request);
    if (answer === undefined) return;
    // It has them also if its answer does not arrive.
    if (answer.status < 300 && !isTest) {
      accepted.push(...request.events);
      const before = byPath.get(request.path) ?? [];
      before.push(...request.events);
      byPath.set(request.path, before);
    }
    if (answer.isLost) return void response.socket?.destroy();
    response.writeHead(answer.status, answer.headers);
    if (answer.endless === undefined) return void response.end(answer.body ?? "");
    response.write(answer.body ?? "", () => answer.endless === "broken" && response.socket?.destroy());
  }

  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    requests,
    tests,
    accepted,
    acceptedAt: (path) => byPath.get(path) ?? [],
    get connections() {
      return connections;
    },
    answer: () => ({ status: 204 }),
    async kill() {
      server?.closeAllConnections();
      server?.close();
      server = undefined;
    },
    async start() {
      server = createServer((incoming, response) => {
        incoming.toArray().then(
          (chunks: Buffer[]) => {
            const bytes = Buffer.concat(chunks);
            const body = bytes.toString();
            const { url: path = "", headers } = incoming;
            const isJson = headers["content-type"]?.includes("json") === true;
            const events = isJson ? [JSON.parse(body) as ReceivedEvent | ReceivedEvent[]].flat() : [];
            void take({ path, headers, body, bytes, events }, response);
          },
          () => {},
        );
      });
      server.on("connection", () => connections++);
      server.listen(port, "127.0.0.1");
      await once(server, "listening");
    },
    [Symbol.asyncDispose]: () => receiver.kill(),
  };
  await receiver.start();
  return receiver;
}
