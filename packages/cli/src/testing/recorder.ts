import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import type { Hello, Item, PushRequest, PushResponse } from "@tapedeck/proto/tapedeck/v1/recorder";
import { RecorderService } from "@tapedeck/proto/tapedeck/v1/recorder";

export type TestRecorder = AsyncDisposable & {
  readonly address: string;
  /** The address by which users name the Tapedeck server that has this gRPC. */
  readonly url: string;
  readonly port: number;
  readonly hellos: readonly Hello[];
  readonly items: readonly Item[];
  /** Requests that came, whatever was in them. */
  readonly requests: () => number;
};

/** How people name the Tapedeck that takes gRPC at an address ("127.0.0.1:7051", "https://…"): HTTP is on the port above. */
export function urlOf(grpc: string): string {
  const at = grpc.lastIndexOf(":");
  const scheme = grpc.startsWith("https://") ? "" : "http://";
  return `${scheme}${grpc.slice(0, at)}:${Number(grpc.slice(at + 1)) + 1}`;
}

export type TestRecorderOptions = {
  /** Projects that another tap records. */
  readonly taken?: readonly string[];
  /** Default: a free one. */
  readonly port?: number;
  /** The developer that owns all recordings, whatever the tap reports. */
  readonly developer?: string;
  /** The session of everything that comes, as the tap learns it. */
  readonly session?: string;
  /** Every push is refused with this. */
  readonly refusal?: { readonly code: number; readonly details: string };
};

/** The other side of Recorder/Push, over real gRPC: takes and commits everything. */
export async function startRecorder(options: TestRecorderOptions = {}): Promise<TestRecorder> {
  const { taken = [], refusal, port: requestedPort = 0 } = options;
  const hellos: Hello[] = [];
  const items: Item[] = [];
  /** By tap. One that connects again pushes once more what it does not know to be committed. */
  const committed = new Map<string, bigint>();
  let requests = 0;
  const push = (call: ServerDuplexStream<PushRequest, PushResponse>) => {
    let tap = "";
    call.on("data", ({ body }: PushRequest) => {
      requests++;
      if (body?.$case === "hello") {
        const { project, upstream } = body.value;
        const developer = options.developer ?? body.value.developer;
        if (refusal !== undefined) call.emit("error", refusal);
        else if (taken.includes(project))
          call.emit("error", { code: 6, details: `${project} is recorded by another tap` });
        else {
          hellos.push(body.value);
          tap = body.value.tap;
          const source = `default/${developer}/${project}/${upstream}`;
          call.write({ body: { $case: "welcome", value: { source, committed: committed.get(tap) ?? 0n } } });
        }
      }
      const came = body?.$case === "item" ? [body.value] : body?.$case === "items" ? body.value.items : [];
      for (const item of came) {
        if (item.index <= (committed.get(tap) ?? 0n)) continue;
        committed.set(tap, item.index);
        items.push(item);
        const { session } = options;
        if (session !== undefined && item.what?.$case === "dialled") {
          call.write({ body: { $case: "session_found", value: { session } } });
        }
        call.write({ body: { $case: "committed", value: { index: item.index } } });
      }
    });
    call.on("end", () => call.end());
  };
  const server = new Server({ "grpc.max_receive_message_length": -1 });
  server.addService(RecorderService, { push });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${requestedPort}`, ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    address: `127.0.0.1:${port}`,
    url: urlOf(`127.0.0.1:${port}`),
    requests: () => requests,
    port,
    hellos,
    items,
    [Symbol.asyncDispose]: async () => server.forceShutdown(),
  };
}
