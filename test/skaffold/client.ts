import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";

const asIs = (bytes: Buffer) => bytes;

export type Answer = {
  readonly code: number;
  readonly message: string;
  readonly bytes: Buffer;
  readonly metadata: Metadata;
};

/** A gRPC client that handles plain bytes and decodes no messages: it returns exactly what was sent. */
export type SkaffoldClient = Disposable & {
  unary(method: string, request?: Uint8Array, metadata?: Record<string, string>): Promise<Answer>;
  /** Reads messages until the count is reached, or the stream ends. */
  take(method: string, count: number, metadata?: Record<string, string>): Promise<Buffer[]>;
  /** Reads all messages until the server ends the stream. */
  all(method: string, metadata?: Record<string, string>): Promise<Buffer[]>;
};

export function skaffoldClient(address: string): SkaffoldClient {
  const client = new Client(address, credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
  });
  const metadataOf = (entries: Record<string, string>) => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
    return metadata;
  };
  const read = async (method: string, count: number, entries: Record<string, string>) => {
    const call = client.makeServerStreamRequest(method, asIs, asIs, Buffer.alloc(0), metadataOf(entries));
    const messages: Buffer[] = [];
    if (count === 0) {
      call.on("error", () => {}).cancel();
      return messages;
    }
    for await (const message of call as AsyncIterable<Buffer>) {
      messages.push(message);
      if (messages.length >= count) break;
    }
    call.on("error", () => {}).cancel(); // leaving the loop does not cancel the call
    return messages;
  };
  return {
    unary: (method, request = new Uint8Array(), entries = {}) =>
      new Promise((resolve) => {
        let metadata = new Metadata();
        client
          .makeUnaryRequest(
            method,
            asIs,
            asIs,
            Buffer.from(request),
            metadataOf(entries),
            (error: ServiceError | null, bytes) => {
              resolve({
                code: error?.code ?? 0,
                message: error?.details ?? "",
                bytes: bytes ?? Buffer.alloc(0),
                metadata: error?.metadata ?? metadata,
              });
            },
          )
          .on("metadata", (got) => {
            metadata = got;
          });
      }),
    take: (method, count, entries = {}) => read(method, count, entries),
    all: (method, entries = {}) => read(method, Number.POSITIVE_INFINITY, entries),
    [Symbol.dispose]: () => client.close(),
  };
}
