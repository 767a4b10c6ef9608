import { invalidArgument } from "../errors/errors.ts";

/** A method by its codec, as ts-proto generates it. */
export type RequestCodec<Request> = {
  readonly path: string;
  readonly requestDeserialize: (bytes: Buffer) => Request;
};

/**
 * Decodes a request in the handler: what grpc-js can't decode itself it answers with INTERNAL, as if the fault were ours.
 * @throws TapedeckError invalid_argument
 */
export function decodedRequest<Request>({ path, requestDeserialize }: RequestCodec<Request>, bytes: Buffer): Request {
  try {
    return requestDeserialize(bytes);
  } catch (cause) {
    throw invalidArgument(`the message is not a request of ${path} (${(cause as Error).message})`, "", { cause });
  }
}
