import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, type FakeSkaffoldOptions, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { LogWriter, RecordedEvent } from "@tapedeck/shared/log/log";
import type { SourceName } from "@tapedeck/shared/source";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import { openTestLog, spillFolder } from "../faults/processes.ts";
import { framesOf, skaffoldSource, sourceEvents } from "../faults/recorded-events.ts";
import { type ServiceProcess, startServiceProcess } from "../faults/service-process.ts";

const fixtures = recordings.skaffold;

/** One fake Skaffold with its own log; ingest processes come and go. */
export type IngestHarness = AsyncDisposable & {
  readonly nats: TestNats;
  readonly recording: RecordedUpstream;
  readonly fake: FakeSkaffold;
  readonly source: SourceName;
  readonly writer: LogWriter;
  /** An ingest on this source; without a folder it is another machine's. */
  ingest(options?: IngestOptions): Promise<ServiceProcess>;
  events(): Promise<readonly RecordedEvent[]>;
  /** Waits until all frames of v1 and v2 that the fake has sent are in the log. */
  recorded(): Promise<void>;
  /** Plays that part (0 to 1) of all v1 events, and what goes with them. */
  playTo(part: number): Promise<void>;
};

export type IngestOptions = {
  readonly spillMemoryBytes?: number;
};

export async function ingestHarness(
  folder: string,
  fakeOptions: Partial<FakeSkaffoldOptions> = {},
): Promise<IngestHarness> {
  await using cleanup = new AsyncDisposableStack();
  const recording = loadRecording(join(fixtures, folder));
  const fake = cleanup.use(await startFakeSkaffold({ recording, ...fakeOptions }));
  const nats = cleanup.use(await startTestNats({ syncAlways: true }));
  const log = cleanup.use(await openTestLog(nats.url));
  const source = skaffoldSource("alice");
  const events = sourceEvents(log.reader, source);
  const owned = cleanup.move();
  return {
    nats,
    recording,
    fake,
    source,
    writer: log.writer,
    events,
    async ingest({ spillMemoryBytes } = {}) {
      const upstream = { developer: "alice", project: "shop", address: fake.address, redact: "off" };
      return owned.use(
        await startServiceProcess("ingest", {
          TAPEDECK_NATS_URL: nats.url,
          TAPEDECK_SOURCES: JSON.stringify([upstream]),
          TAPEDECK_INGEST_SPILL_DIR: await spillFolder(),
          ...(spillMemoryBytes !== undefined && { TAPEDECK_INGEST_SPILL_MEMORY_BYTES: String(spillMemoryBytes) }),
        }),
      );
    },
    async recorded() {
      const isThere = async () => {
        const there = await events();
        for (const channel of ["v1", "v2"] as const) {
          expect({ channel, count: framesOf(there, channel).length }).toEqual({ channel, count: fake.played[channel] });
        }
        return true;
      };
      await until(isThere, { message: "all that was said to be recorded" });
    },
    playTo: (part) => fake.playUntil({ v1: Math.floor(recording.messages.v1.length * part) }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The frames of a recording's channel, as `framesOf` gives those of the log. */
export function sentFrames({ messages }: RecordedUpstream, channel: "v1" | "v2" | "logs"): string[] {
  return messages[channel].map(({ bytes }) => bytes.toString("base64"));
}

export async function logs(service: ServiceProcess, text: string, times = 1): Promise<void> {
  const count = () => service.logged.filter((line) => line.includes(text)).length;
  await until(() => count() >= times, { message: `"${text}" to be logged` });
}

/** Returns a value of a service's /metrics, summed over all matches; undefined if there is none. */
export async function metric({ addresses }: ServiceProcess, name: string, labels = ""): Promise<number | undefined> {
  const text = await (await fetch(`http://${addresses.health}/metrics`)).text();
  const values = text
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) && line.includes(labels))
    .map((line) => Number(line.split(" ").at(-1)));
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
}
