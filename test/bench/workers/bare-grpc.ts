import { Server, ServerCredentials, type ServerWritableStream } from "@grpc/grpc-js";

/** A grpc-js server without Tapedeck code: it streams ready bytes and waits when the client does not read. */

const asIs = (bytes: Buffer) => bytes;
let messages: readonly Buffer[] = [];
let total = 0;

export const path = "/bench.Bare/Read";

/** Resolves with "host:port". */
export async function start(): Promise<string> {
  const server = new Server();
  const method = { path, requestStream: false, responseStream: true, originalName: "read" } as const;
  const codec = {
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
  server.addService({ read: { ...method, ...codec } }, { read: (call: Call) => void write(call) });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  return `127.0.0.1:${port}`;
}

type Call = ServerWritableStream<Buffer, Buffer>;

export function serve(bytes: readonly Uint8Array[], count: number): void {
  messages = bytes.map((each) => Buffer.from(each));
  total = count;
}

async function write(call: Call): Promise<void> {
  let wake = () => {};
  call.on("drain", () => wake()).on("cancelled", () => wake());
  for (let index = 0; index < total && !call.cancelled; index++) {
    if (call.write(messages[index % messages.length] as Buffer)) continue;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
  call.end();
}
