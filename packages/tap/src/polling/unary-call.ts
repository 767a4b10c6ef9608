import { type Client, Metadata, type ServiceError, status } from "@grpc/grpc-js";

export type Reply = { readonly code: number; readonly message: string; readonly response: Buffer };

export type UnaryCall = {
  readonly timeoutMs: number;
  /** When it aborts the call is given up: CANCELLED. */
  readonly signal: AbortSignal;
  readonly metadata?: Metadata;
};

/** Asks an upstream, with bytes. Never rejects: whatever goes wrong is a reply with gRPC's code. */
export function callUnary(
  client: Client,
  path: string,
  request: Uint8Array,
  { timeoutMs, signal, metadata = new Metadata() }: UnaryCall,
): Promise<Reply> {
  return new Promise((resolve) => {
    const done = (error: ServiceError | null, response?: Buffer) => {
      signal.removeEventListener("abort", cancel);
      // Our own deadline: the library's text would name sockets.
      if (error?.code === status.DEADLINE_EXCEEDED) resolve(failed(error.code, `no answer within ${timeoutMs} ms`));
      else if (error !== null) resolve(failed(error.code, error.details));
      else resolve({ code: status.OK, message: "", response: response ?? Buffer.alloc(0) });
    };
    const deadline = Date.now() + timeoutMs;
    const call = client.makeUnaryRequest(path, same, same, Buffer.from(request), metadata, { deadline }, done);
    const cancel = () => call.cancel();
    signal.addEventListener("abort", cancel);
    if (signal.aborted) cancel();
  });
}

/** Messages stay bytes: what an upstream said is kept untouched. */
export function same(bytes: Buffer): Buffer {
  return bytes;
}

export function failed(code: number, message: string): Reply {
  return { code, message, response: Buffer.alloc(0) };
}
