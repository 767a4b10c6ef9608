import { get, type IncomingMessage } from "node:http";
import { Client, credentials } from "@grpc/grpc-js";
import { WebSocket } from "ws";

/** A reader on one connection that can pause and resume. */
export type PausableReader = Disposable & {
  /** The received events: their ids, or over gRPC their bytes in base64. */
  readonly got: readonly string[];
  pause(): void;
  resume(): void;
  /** Why its connection ended; undefined while it is open. */
  readonly over: string | undefined;
};

export type OpenReader = (at: { readonly grpc: string; readonly http: string }) => PausableReader;

export const readers: Readonly<Record<string, OpenReader>> = {
  gRPC: ({ grpc }) => {
    const client = new Client(grpc, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
    const asIs = (bytes: Buffer) => bytes;
    const call = client.makeServerStreamRequest("/proto.v2.SkaffoldV2Service/Events", asIs, asIs, Buffer.alloc(0));
    const got: string[] = [];
    let over: string | undefined;
    call.on("data", (bytes: Buffer) => got.push(bytes.toString("base64")));
    call.on("error", (error) => {
      over = error.message;
    });
    return {
      got,
      pause: () => call.pause(),
      resume: () => call.resume(),
      get over() {
        return over;
      },
      [Symbol.dispose]: () => client.close(),
    };
  },
  WebSocket: ({ http }) => {
    const got: string[] = [];
    let after = "start";
    let over: string | undefined;
    let wasPaused = false;
    let socket = connect();

    function connect(): WebSocket {
      const opened = new WebSocket(`ws://${http}/api/v1/ws`, "tapedeck.v1.json");
      opened.on("open", () => opened.send(JSON.stringify({ type: "subscribe", id: "a", after })));
      opened.on("message", (data) => {
        const text = String(data);
        keepIds(text, got);
        after = /"position":"([^"]+)"/.exec(text)?.[1] ?? after;
      });
      opened.on("error", () => {});
      opened.on("close", (code) => {
        // A client that does not answer a ping for 35 s is disconnected, which can affect this one on a busy machine.
        if (wasPaused && (code === 4408 || code === 1006)) socket = connect();
        else over = `closed with ${code}`;
      });
      return opened;
    }
    return {
      got,
      pause: () => {
        wasPaused = true;
        socket.pause();
      },
      resume: () => socket.resume(),
      get over() {
        return over;
      },
      [Symbol.dispose]: () => socket.terminate(),
    };
  },
  "server-sent events": ({ http }) => httpReader(http, "text/event-stream"),
  NDJSON: ({ http }) => httpReader(http, "application/x-ndjson"),
};

function httpReader(http: string, accept: string): PausableReader {
  const got: string[] = [];
  let over: string | undefined;
  let response: IncomingMessage | undefined;
  let isPaused = false;
  const request = get(`http://${http}/api/v1/stream?after=start`, { headers: { accept }, agent: false }, (opened) => {
    response = opened;
    let rest = "";
    opened.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) keepIds(line, got);
    });
    opened.on("close", () => {
      over = "the response is over";
    });
    if (isPaused) opened.pause();
  });
  request.on("error", (error) => {
    over = error.message;
  });
  return {
    got,
    pause: () => {
      isPaused = true;
      response?.pause();
    },
    resume: () => {
      isPaused = false;
      response?.resume();
    },
    get over() {
      return over;
    },
    [Symbol.dispose]: () => request.destroy(),
  };
}

/** Parsing every message in full would make the test itself slow. */
function keepIds(text: string, got: string[]): void {
  if (!text.includes('"type":"event"')) return;
  const [, id = ""] = /"event":\{.*?"id":"([^"]+)"/.exec(text) ?? [];
  got.push(id);
}
