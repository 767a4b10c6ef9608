import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { now } from "../frame/arrivals.ts";

/** A gRPC client that handles plain bytes and decodes no messages. */

const asIs = (bytes: Buffer) => bytes;
const keptMessages = 2_000;
let first: Buffer[] = [];

/** Some messages of the last `read`, for a calibration. */
export const firstMessages = (): readonly Buffer[] => first;

/** Reads until so many messages have come, and disconnects. */
export async function read(address: string, path: string, head: Readonly<Record<string, string>>, count: number) {
  const client = new Client(address, credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.use_local_subchannel_pool": 1,
  });
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(head)) metadata.set(name, value);
  const start = now();
  first = [];
  let [messages, bytes] = [0, 0];
  const call = client.makeServerStreamRequest(path, asIs, asIs, Buffer.alloc(0), metadata);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  call.on("data", (message: Buffer) => {
    messages++;
    bytes += message.length;
    if (first.length < keptMessages) first.push(message);
    if (messages === count) resolve(now() - start);
  });
  call.on("error", reject);
  call.on("end", () => reject(new Error(`the stream ended after ${messages} of ${count} messages`)));
  try {
    return { wallMs: await promise, count: messages, bytes };
  } finally {
    call.cancel();
    client.close();
  }
}

let unary: Client | undefined;

/** Makes one call after the other on one connection. Resolves with the time of each in ms, ascending. */
export async function unaryTimes(
  address: string,
  path: string,
  heads: readonly Readonly<Record<string, string>>[],
  count: number,
): Promise<Float64Array> {
  unary ??= new Client(address, credentials.createInsecure());
  const times = new Float64Array(count);
  for (let index = 0; index < count; index++) {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(heads[index % heads.length] ?? {})) metadata.set(name, value);
    const start = now();
    await new Promise<void>((resolve, reject) => {
      unary?.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), metadata, (error) =>
        error ? reject(error) : resolve(),
      );
    });
    times[index] = now() - start;
  }
  return times.sort();
}
