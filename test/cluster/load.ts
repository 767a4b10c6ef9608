import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, mayHoldEvents, type Offset } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { services } from "@tapedeck/shared/skaffold/methods";
import type { SourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import { framesOf, gapsOf, holes, kindsOf, skaffoldSource, sourceEvents } from "../faults/recorded-events.ts";
import { eventsSubscriber } from "../faults/subscribers.ts";

/** Application logs are left out: Skaffold itself repeats only those of the last loop to a new reader. */
const channels = ["v1", "v2"] as const;
type LoadChannel = (typeof channels)[number];

/** How much faster than recorded: some seven frames a second. */
const speed = 1;
const pauseMs = 500;

/** Only determines when a broken cluster is given up: on a busy machine a fault may have effects for minutes. */
const deadlineMs = 600_000;

/**
 * How many frames of a source the log has, each read once. This is asked all the time, in the process through which the
 * cluster's connections pass: reading everything each time would hold them up, the more the longer a run lasts.
 */
export class RecordedFrames {
  readonly #source: SourceName;
  readonly #counts = { v1: 0, v2: 0 };
  #after: Offset = logStart;

  constructor(source: SourceName) {
    this.#source = source;
  }

  /** Rejects while the log is unavailable. */
  async count(log: Pick<LogReader, "lastMatch" | "history">): Promise<Readonly<Record<LoadChannel, number>>> {
    const subjects = [sourceFilter(this.#source)];
    const last = await log.lastMatch(subjects);
    if (!mayHoldEvents(this.#after, last)) return this.#counts;
    const signal = AbortSignal.timeout(30_000);
    for await (const { event, offset } of log.history({ afterOffset: this.#after, subjects }, last, signal)) {
      this.#after = offset;
      if (event.part !== 0) continue;
      for (const channel of channels) if (event.channel === channel) this.#counts[channel]++;
    }
    return this.#counts;
  }
}

/** A Skaffold that runs one dev loop after the other, and the log's expected record of it. */
export class Load implements AsyncDisposable {
  readonly developer: string;
  readonly source: SourceName;
  readonly fake: FakeSkaffold;
  readonly #recorded: RecordedFrames;

  private constructor(developer: string, fake: FakeSkaffold) {
    this.developer = developer;
    this.source = skaffoldSource(developer);
    this.fake = fake;
    this.#recorded = new RecordedFrames(this.source);
  }

  static async start(developer: string): Promise<Load> {
    const recording = loadRecording(join(recordings.skaffold, "01-dev-success-3-artifacts-5-iterations"));
    // A reader that is killed during its replay would hang the real Skaffold. That is Skaffold's problem and must not
    // end a test of Tapedeck.
    const fake = await startFakeSkaffold({ recording, speed, leavingInReplayHangs: false, loop: { pauseMs } });
    return new Load(developer, fake);
  }

  /** Resolves when so many more frames were emitted and all frames emitted until then are in the log. */
  async recorded(log: LogReader, more: number): Promise<void> {
    const expected = { v1: this.fake.played.v1, v2: this.fake.played.v2 + more };
    await until(() => this.fake.played.v2 >= expected.v2, {
      message: `${this.developer} to have said more`,
      deadlineMs,
    });
    const isThere = async () => {
      const there = await this.#recorded.count(log);
      for (const channel of channels) expect(there[channel], channel).toBeGreaterThanOrEqual(expected[channel]);
      return true;
    };
    await until(isThere, { message: `${this.developer}'s frames to be recorded`, deadlineMs });
  }

  /** Checks that each emitted frame is in the log once and in order, and that no gap is recorded. */
  async isRecordedOnce(log: LogReader): Promise<readonly RecordedEvent[]> {
    await this.recorded(log, 0);
    const events = await sourceEvents(log, this.source)();
    for (const channel of channels) {
      expect(framesOf(events, channel), `${this.developer} ${channel}`).toEqual(await this.#said(channel));
      expect(gapsOf(events, channel)).toEqual([]);
    }
    expect(holes(events)).toEqual([]);
    expect(kindsOf(events).filter((kind) => /^session\.(started|ended|lost)$/.test(kind))).toEqual(["session.started"]);
    expect(this.fake.hung).toEqual([]);
    return events;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fake[Symbol.asyncDispose]();
  }

  /** The frames that Skaffold itself sends a new reader: all of them again. */
  async #said(channel: LoadChannel): Promise<readonly string[]> {
    await using reader = eventsSubscriber(this.fake.address, services[channel].events.path, this.source, "");
    await until(() => reader.seen.length >= this.fake.played[channel], { message: "the replay" });
    return reader.seen;
  }
}
