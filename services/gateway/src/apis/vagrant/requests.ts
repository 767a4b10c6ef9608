import { absent, unreadableRequest } from "./errors.ts";

/** A codec of request messages. */
export type RequestType<Request> = { readonly decode: (bytes: Uint8Array) => Request };

/** @throws UpstreamError for bytes that are not a request */
export function decoded<Request>({ decode }: RequestType<Request>, bytes: Uint8Array): Request {
  try {
    return decode(bytes);
  } catch {
    throw unreadableRequest();
  }
}

/** @throws UpstreamError for a request without the message that it needs */
export function required<Message>(name: string, message: Message | undefined): Message {
  if (message === undefined) throw absent(name);
  return message;
}
