import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { SourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import type { Normalizer } from "../../normalize/normalizer.ts";
import { openSessionRecorder, type SessionRecorder } from "../session/session-recorder.ts";
import type { FakeLog } from "./fake-log.ts";

export type PollingTapOptions = {
  readonly source: SourceName;
  readonly normalizer: Normalizer;
  /** In seconds. */
  readonly textTtl?: number;
};

export type PollingTap = ReturnType<typeof pollingTap>;

/** A tap that remembers what it pushed, so that it can push it again. */
export function pollingTap(log: FakeLog, { source, normalizer, textTtl }: PollingTapOptions) {
  const items: Item[] = [];
  const controller = new AbortController();
  const open = (from: number) =>
    openSessionRecorder({
      log: { writer: log, reader: log.reader },
      source,
      normalizer,
      signal: controller.signal,
      textTtl,
      hello: {
        developer: "h1",
        project: "host",
        upstream: "rkt",
        tap: "T",
        labels: {},
        redact: "on",
        first_index: BigInt(from),
        settings: {},
      },
    });
  let recording: Promise<SessionRecorder> = open(1);
  const push = async (ms: number, connection: string, what: NonNullable<Item["what"]>) => {
    const item: Item = { index: BigInt(items.length + 1), connection, at: timestampOfMs(ms), what };
    items.push(item);
    await (await recording).take(item);
  };
  const see = (ms: number, connection: string, channel: string, result: Observation["result"]) => {
    const bytes = Buffer.from(Observation.encode({ result }).finish());
    return push(ms, connection, { $case: "frame", value: { channel, bytes, more: false } });
  };
  const isSettled = async () => (await recording).committed() === BigInt(items.length);
  return {
    async dial(ms: number, connection: string, identity: string) {
      await push(ms, connection, { $case: "dialled", value: { address: "h1:15441", channels: ["pods", "images"] } });
      await push(ms, connection, { $case: "identified", value: { identity, version: "1.30.0" } });
    },
    observation: (ms: number, connection: string, channel: string, all: Uint8Array | string) =>
      see(ms, connection, channel, { $case: "all", value: Buffer.from(all) }),
    see,
    lost: (ms: number, connection: string) =>
      push(ms, connection, { $case: "closed", value: { reason: "cut", process_ended: false, unseen: false } }),
    push,
    isSettled,
    settled: () => until(isSettled, { message: "all to be committed" }),
    /**
     * Pushes again from this item on, or from an earlier one that was not committed. What is pushed meanwhile comes after what
     * is pushed again.
     */
    async crash(from = items.length + 1) {
      const count = items.length;
      const startAgain = async (before: Promise<SessionRecorder>) => {
        const session = await before;
        await session[Symbol.asyncDispose]();
        const first = Math.min(from, Number(session.committed()) + 1);
        const after = await open(first);
        for (const item of items.slice(first - 1, count)) await after.take(item);
        return after;
      };
      recording = startAgain(recording);
      await recording;
    },
    [Symbol.asyncDispose]: async () => (await recording)[Symbol.asyncDispose](),
  };
}
