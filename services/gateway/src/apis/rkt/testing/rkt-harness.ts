import { sourceName } from "@tapedeck/shared/source";
import { largeAnswers, sourceHarness } from "../../testing/source-harness.ts";
import { rktApi } from "../rkt-api.ts";

export const host = sourceName({ workspace: "default", developer: "node-1", project: "host", upstream: "rkt" });

export type { Fields } from "../../testing/source-harness.ts";

export type Harness = Awaited<ReturnType<typeof rktHarness>>;

/** rkt's API on a real log, and a stand-in for query that gives the answers of a test. */
export async function rktHarness() {
  const on = await sourceHarness(host);
  return { ...on, api: rktApi({ ...on.deps, largeAnswers }) };
}

/** Keeps what a stream gives, as it comes. */
export function reader<T>(messages: AsyncIterable<Uint8Array>, decode: (bytes: Uint8Array) => T) {
  const got: T[] = [];
  const read = async () => {
    for await (const message of messages) got.push(decode(message));
  };
  return { got, done: read() };
}

export const timestamp = (seconds: number, nanos = 0) => ({ seconds: BigInt(seconds), nanos });
