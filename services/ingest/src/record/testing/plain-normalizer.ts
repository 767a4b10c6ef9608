import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../normalize/fact.ts";
import type { ChannelNormalizer, Normalizer } from "../../normalize/normalizer.ts";

/**
 * An upstream for tests whose frames are text: "12 hello" is a message of millisecond 12, "12 hello+2" has three facts;
 * what does not begin with a number has no time; "SECRET" is masked. Facts are numbered by a memory of the channel.
 */
export function plainNormalizer(...channels: readonly { name: string; replays: boolean }[]): Normalizer {
  return {
    channels: channels.map(channel),
    mask(_, bytes) {
      const text = Buffer.from(bytes).toString();
      const masked = text.replaceAll("SECRET", "******");
      return { bytes: Buffer.from(masked), redacted: text.split("SECRET").length - 1 };
    },
    stateDiffers: (_, before, after) => Buffer.compare(before, after) !== 0,
    controlSteps: (method, request) => [{ method, request }],
    injects: (method, request) =>
      method === "handle"
        ? { channel: "a", matches: (frame) => Buffer.from(frame).toString().endsWith(` ${request}`) }
        : undefined,
  };
}

function channel({ name, replays }: { name: string; replays: boolean }): ChannelNormalizer {
  return {
    name,
    messageType: `test.${name}`,
    replays,
    timestampOf(bytes) {
      const ms = Number.parseInt(Buffer.from(bytes.subarray(0, 20)).toString(), 10);
      return Number.isNaN(ms) ? undefined : timestampOfMs(ms);
    },
    reader() {
      let count = 0;
      return {
        read(bytes) {
          const text = Buffer.from(bytes.subarray(0, 100)).toString();
          const more = Number(/\+(\d)$/.exec(text)?.[1] ?? 0);
          return Array.from({ length: more + 1 }, () => fact(++count)) as [Fact, ...Fact[]];
        },
        resume() {
          count++;
        },
      };
    },
  };
}

/** The summary is what the reader remembers, so that a reader brought up wrongly shows. */
function fact(count: number): Fact {
  return { kind: "log.written", summary: `fact ${count}` };
}
