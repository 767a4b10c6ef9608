import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Fact } from "../fact.ts";
import type { FrameReader } from "../normalizer.ts";

/** Reads the frames of one channel: pure functions over a memory of that channel alone. */
export type ChannelReader<Memory> = {
  readonly start: Memory;
  /**
   * Total: never throws, whatever the bytes. `injected`: a client put the frame into the upstream's stream. `cause`: what
   * the frame shows of a failed step that no frame of its own reports; it comes before the fact.
   */
  readonly read: (
    memory: Memory,
    bytes: Uint8Array,
    injected: boolean,
  ) => { readonly memory: Memory; readonly fact: Fact; readonly cause?: Fact | undefined };
  /** The memory after a recorded event. Its original may be absent, so kind, operation and detail must do. */
  readonly resume: (memory: Memory, event: Event) => Memory;
};

export function frameReader<Memory>({ start, read, resume }: ChannelReader<Memory>): FrameReader {
  let memory = start;
  return {
    read(bytes, injected = false) {
      const { memory: next, fact, cause } = read(memory, bytes, injected);
      memory = next;
      return cause === undefined ? [fact] : [cause, fact];
    },
    resume(event) {
      memory = resume(memory, event);
    },
  };
}
