import type { RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import { logStart } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { createLogger, silentLogger } from "@tapedeck/shared/service/logger";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import { readConfig } from "../config.ts";
import { startIngest } from "../ingest.ts";
import type { RecordingTimes } from "../record/recorder-options.ts";

export const testLogger = process.env.TAPEDECK_TEST_LOG === undefined ? silentLogger : createLogger("ingest");

export const skaffoldSource = (developer: string, project = "shop"): SourceName =>
  sourceName({ workspace: "default", developer, project, upstream: "skaffold" });

/** An ingest that records one source into the log there; `env` and the source's other settings as needed. */
export async function startHarnessOn(
  natsUrl: string,
  developer: string,
  address: string,
  {
    env: moreEnv,
    times,
    ...more
  }: Readonly<Record<string, unknown>> & { readonly env?: object; readonly times?: RecordingTimes } = {},
) {
  const { folder, ...tidy } = await temporaryFolder();
  const env = {
    TAPEDECK_NATS_URL: natsUrl,
    TAPEDECK_INGEST_GRPC_PORT: "0",
    TAPEDECK_INGEST_HEALTH_PORT: "0",
    TAPEDECK_INGEST_SPILL_DIR: folder,
    TAPEDECK_SOURCES: JSON.stringify([{ developer, project: "shop", address, redact: "off", ...more }]),
    ...moreEnv,
  };
  const ingest = await startIngest({ ...readConfig({ env }), ...(times && { times }) }, testLogger);
  return {
    ingest,
    [Symbol.asyncDispose]: async () => {
      await ingest[Symbol.asyncDispose]();
      await tidy[Symbol.asyncDispose]();
    },
  };
}

/** Reads the log beside its writers. */
export async function openLogReader(natsUrl: string, workspace = "default") {
  const nats = await connectThroughRestarts(natsUrl);
  const log: Log = await openLog(nats, { workspace, syncKnown: true, timeoutMs: 20_000 });
  return {
    log,
    nats,
    /** All events of a source, in order. */
    async events(source: SourceName): Promise<Event[]> {
      const subjects = [sourceFilter(source)];
      const until = await log.reader.lastMatch(subjects);
      const events: Event[] = [];
      const signal = AbortSignal.timeout(60_000);
      for await (const { event } of log.reader.history({ afterOffset: logStart, subjects }, until, signal))
        events.push(event);
      return events;
    },
    [Symbol.asyncDispose]: async () => {
      await log[Symbol.asyncDispose]();
      await nats.close();
    },
  };
}

/** Waits until the source has all frames that v1 of the recording has, each once and in order, and nothing else is missing. */
export async function expectRecorded(
  logReader: Awaited<ReturnType<typeof openLogReader>>,
  source: SourceName,
  recording: RecordedUpstream,
): Promise<void> {
  const all = bytesOf(recording, "v1");
  await until(async () => framesOf(await logReader.events(source), "v1").length >= all.length, {
    message: "what waited to be recorded",
  });
  const events = await logReader.events(source);
  expect(framesOf(events, "v1")).toEqual(all);
  expect(holes(events)).toEqual([]);
}

export function framesOf(events: readonly Event[], channel: string): Buffer[] {
  return events.flatMap((event) =>
    event.channel === channel && event.part === 0 && event.original !== undefined ? [event.original.bytes] : [],
  );
}

export function kindsOf(events: readonly Event[]): string[] {
  return events.flatMap(({ channel, kind }) => (channel === "tapedeck" ? [kind] : []));
}

export function bytesOf(recording: RecordedUpstream, channel: "v1" | "v2" | "logs"): Buffer[] {
  return recording.messages[channel].map(({ bytes }) => bytes);
}

/** Ordinals of each session's channels (of "tapedeck": of the source) count 1, 2, 3 … without holes. */
export function holes(events: readonly Event[]): string[] {
  const last = new Map<string, bigint>();
  return events.flatMap(({ session, channel, ordinal, id }) => {
    const key = channel === "tapedeck" ? channel : `${session}.${channel}`;
    const expected = (last.get(key) ?? 0n) + 1n;
    last.set(key, ordinal);
    return ordinal === expected ? [] : [`${id}, expected ${expected}`];
  });
}
