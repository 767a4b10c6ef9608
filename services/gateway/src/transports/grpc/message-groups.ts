import type { ServerHttp2Stream } from "node:http2";
import {
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  status,
} from "@grpc/grpc-js";

/** Messages that a handler writes as one, so that they cost one write of HTTP/2 together. Needs `messageGroups`. */
export class FramedMessages {
  readonly messages: readonly Uint8Array[];

  constructor(messages: readonly Uint8Array[]) {
    this.messages = messages;
  }
}

/**
 * Writes each group of messages to the call's HTTP/2 stream at once. grpc-js has no such thing: it writes a message when the
 * one before has left, which is most of what a message costs. So this takes the stream out of a private field of its
 * innermost call, and writes the messages one by one where that is not there. Must be the first of the interceptors, so
 * that whatever another one holds back is not written.
 */
export const messageGroups: ServerInterceptor = (_method, call) => new GroupedCall(call);

class GroupedCall extends ServerInterceptingCall {
  readonly #call: ServerInterceptingCallInterface;
  readonly #stream: ServerHttp2Stream | undefined;

  constructor(call: ServerInterceptingCallInterface) {
    super(call);
    this.#call = call;
    this.#stream = streamOf(call);
  }

  override sendMessage(message: unknown, callback: () => void): void {
    if (!(message instanceof FramedMessages)) this.#call.sendMessage(message, callback);
    else if (this.#canWrite) this.#writeTogether(message, callback);
    else this.#sendEach(message.messages, callback);
  }

  /** The response's metadata are sent with its first message at the latest, and that is grpc-js's part. */
  get #canWrite(): boolean {
    const stream = this.#stream;
    return stream?.headersSent === true && !stream.destroyed && !stream.closed && !stream.writableEnded;
  }

  #writeTogether({ messages }: FramedMessages, callback: () => void): void {
    this.#stream?.write(framed(messages), (error) => {
      if (error) this.#call.sendStatus({ code: status.INTERNAL, details: "Internal server error" });
      else callback();
    });
  }

  #sendEach(messages: readonly Uint8Array[], callback: () => void, index = 0): void {
    const next = () => this.#sendEach(messages, callback, index + 1);
    this.#call.sendMessage(messages[index], index === messages.length - 1 ? callback : next);
  }
}

function streamOf(call: object): ServerHttp2Stream | undefined {
  const stream = "stream" in call ? call.stream : undefined;
  const isStream =
    typeof stream === "object" && stream !== null && "headersSent" in stream && "writableEnded" in stream;
  return isStream ? (stream as ServerHttp2Stream) : undefined;
}

/** Each message as gRPC has it on the wire: a byte that says "not compressed", the length, the bytes. */
function framed(messages: readonly Uint8Array[]): Buffer {
  const size = messages.reduce((sum, { byteLength }) => sum + prefix + byteLength, 0);
  const bytes = Buffer.allocUnsafe(size);
  let at = 0;
  for (const message of messages) {
    bytes[at] = 0;
    bytes.writeUInt32BE(message.byteLength, at + 1);
    bytes.set(message, at + prefix);
    at += prefix + message.byteLength;
  }
  return bytes;
}

const prefix = 5;
