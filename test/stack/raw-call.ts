import { type ChannelCredentials, Client, credentials, Metadata, type StatusObject } from "@grpc/grpc-js";
import { infoOf } from "./error-info.ts";

const asIs = (bytes: Buffer) => bytes;

/** A gRPC call of any kind, in bytes: all kinds are alike on the wire. */
export type RawCall = {
  /** The encoded messages that have come so far. */
  readonly messages: readonly Buffer[];
  readonly head: () => Metadata | undefined;
  readonly write: (message: Uint8Array) => void;
  readonly end: () => void;
  readonly cancel: () => void;
  /** Resolves when the server has ended the call, or the client has cancelled it (code 1). */
  readonly over: Promise<StatusObject>;
  /** Resolves with the first message, or with the end of a call without one. */
  readonly answer: Promise<Buffer | StatusObject>;
  /** Resolves when the server has begun to answer, or with the end of the call. */
  readonly begun: Promise<StatusObject | undefined>;
};

export type RawClient = Disposable & {
  readonly open: (path: string, metadata?: Readonly<Record<string, string>>) => RawCall;
  /** Sends one request; resolves with the first message or the call's status. */
  readonly ask: Asks<Buffer | StatusObject>;
  /** Sends one request; resolves with 0 when it is answered, or a stream has begun. */
  readonly code: Asks<number>;
};

type Asks<Answer> = (
  path: string,
  metadata?: Readonly<Record<string, string>>,
  request?: Uint8Array,
) => Promise<Answer>;

export function rawClient(address: string, channel: ChannelCredentials = credentials.createInsecure()): RawClient {
  const client = new Client(address, channel, { "grpc.max_receive_message_length": -1 });
  const open = (path: string, entries: Readonly<Record<string, string>> = {}): RawCall => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
    const call = client.makeBidiStreamRequest(path, asIs, asIs, metadata);
    const messages: Buffer[] = [];
    let head: Metadata | undefined;
    const begun = Promise.withResolvers<undefined>();
    const first = Promise.withResolvers<Buffer>();
    const over = new Promise<StatusObject>((resolve) => call.on("status", resolve));
    call.on("error", () => {});
    call.on("metadata", (got) => {
      head = got;
      begun.resolve(undefined);
    });
    call.on("data", (message: Buffer) => {
      messages.push(message);
      first.resolve(message);
    });
    // The status can overtake messages that are not read yet.
    const taken = new Promise((resolve) => call.on("end", resolve));
    const ended = Promise.all([over, taken]).then(([status]) => status);
    return {
      messages,
      head: () => head,
      write: (message) => call.write(Buffer.from(message)),
      end: () => call.end(),
      cancel: () => call.cancel(),
      over,
      answer: Promise.race([first.promise, ended]),
      begun: Promise.race([begun.promise, ended]),
    };
  };
  const answered = (
    path: string,
    metadata: Readonly<Record<string, string>> = {},
    request: Uint8Array = new Uint8Array(),
  ) => {
    const call = open(path, metadata);
    call.write(request);
    call.end();
    return call;
  };
  return {
    open,
    async code(...what) {
      const call = answered(...what);
      const end = await call.begun;
      call.cancel();
      return end?.code ?? 0;
    },
    async ask(...what) {
      const call = answered(...what);
      const answer = await call.answer;
      call.cancel();
      return answer;
    },
    [Symbol.dispose]: () => client.close(),
  };
}

/** Tapedeck's own code of a refusal; undefined for an answer, and for refusals by others. */
export function reasonOf(answer: Buffer | StatusObject): string | undefined {
  if (Buffer.isBuffer(answer)) return undefined;
  const { code, details: message, metadata } = answer;
  return infoOf({ code, message, metadata, bytes: Buffer.alloc(0) })?.reason;
}
