import { Server, ServerCredentials, type ServerDuplexStream } from "@grpc/grpc-js";
import type { Hello, Item, PushRequest, PushResponse } from "@tapedeck/proto/tapedeck/v1/recorder";
import { RecorderService } from "@tapedeck/proto/tapedeck/v1/recorder";

export type TestRecorder = AsyncDisposable & {
  readonly address: string;
  readonly port: number;
  readonly hellos: readonly Hello[];
  readonly items: readonly Item[];
};

export type TestRecorderOptions = {
  /** Projects that another tap records. */
  readonly taken?: readonly string[];
  /** Default: a free one. */
  readonly port?: number;
  /** Whose everything is, whatever the tap says. */
  readonly developer?: string;
  /** Every push is refused with this. */
  readonly refusal?: { readonly code: number; readonly details: string };
};

/** The other side of Recorder/Push, over real gRPC: takes and commits everything. */
export async function startRecorder(options: TestRecorderOptions = {}): Promise<TestRecorder> {
  const { taken = [], refusal, port: wanted = 0 } = options;
  const hellos: Hello[] = [];
  const items: Item[] = [];
  const push = (call: ServerDuplexStream<PushRequest, PushResponse>) => {
    call.on("data", ({ body }: PushRequest) => {
      if (body?.$case === "hello") {
        const { project, upstream } = body.value;
        const developer = options.developer ?? body.value.developer;
        if (refusal !== undefined) call.emit("error", refusal);
        else if (taken.includes(project))
          call.emit("error", { code: 6, details: `${project} is recorded by another tap` });
        else {
          hellos.push(body.value);
          call.write({
            body: { $case: "welcome", value: { source: `default/${developer}/${project}/${upstream}`, committed: 0n } },
          });
        }
      }
      if (body?.$case === "item") {
        items.push(body.value);
        call.write({ body: { $case: "committed", value: { index: body.value.index } } });
      }
    });
    call.on("end", () => call.end());
  };
  const server = new Server({ "grpc.max_receive_message_length": -1 });
  server.addService(RecorderService, { push });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${wanted}`, ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    address: `127.0.0.1:${port}`,
    port,
    hellos,
    items,
    [Symbol.asyncDispose]: async () => server.forceShutdown(),
  };
}
