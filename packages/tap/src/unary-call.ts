import { type Client, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { asBytes } from "@tapedeck/shared/rpc/as-bytes";

export type Reply = { readonly code: number; readonly message: string; readonly response: Buffer };

export type UnaryCall = {
  readonly timeoutMs: number;
  /** Gives the call up when it aborts: CANCELLED. */
  readonly signal?: AbortSignal;
  readonly metadata?: Metadata;
};

/** Calls an upstream with bytes. Never rejects: every failure is a reply with gRPC's code. */
export function callUnary(
  client: Client,
  path: string,
  request: Uint8Array,
  { timeoutMs, signal, metadata = new Metadata() }: UnaryCall,
): Promise<Reply> {
  return new Promise((resolve) => {
    const done = (error: ServiceError | null, response?: Buffer) => {
      signal?.removeEventListener("abort", cancel);
      // For the deadline that was set here: the library's own text names sockets.
      if (error?.code === status.DEADLINE_EXCEEDED)
        resolve(failedReply(error.code, `no answer within ${timeoutMs} ms`));
      else if (error !== null) resolve(failedReply(error.code, error.details));
      else resolve({ code: status.OK, message: "", response: response ?? Buffer.alloc(0) });
    };
    const deadline = Date.now() + timeoutMs;
    const call = client.makeUnaryRequest(path, asBytes, asBytes, Buffer.from(request), metadata, { deadline }, done);
    const cancel = () => call.cancel();
    signal?.addEventListener("abort", cancel);
    if (signal?.aborted) cancel();
  });
}

export function failedReply(code: number, message: string): Reply {
  return { code, message, response: Buffer.alloc(0) };
}
