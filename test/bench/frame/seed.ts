import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { encodeEvent } from "@tapedeck/shared/events/codec";
import { groupsOf, nextBatch } from "@tapedeck/shared/log/grouping";
import type { Log } from "@tapedeck/shared/log/jetstream";
import type { NewEvent } from "@tapedeck/shared/log/log";
import { endOf, logStart, type Offset, offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { messageSubject } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import type { Bench } from "./bench.ts";
import { copyOf, type Templates, templates } from "./templates.ts";

/** One source's events in the log: a session that began with the templates' opening and repeats their dev loops. */
export type SeededSource = {
  readonly source: SourceName;
  readonly session: string;
  /** All of them, the opening included. */
  readonly events: number;
  /** Frames by channel, as a client of the upstream's API counts them. */
  readonly frames: Readonly<Record<"v1" | "v2", number>>;
  /** A position inside the session; 0: its beginning, 1: its end. */
  readonly positionAt: (part: number) => string;
};

/** How many events are made at a time. */
const atOnce = 1_000;

/** Writes the events of a new source, faster than ingest would and with the same content. */
export class Seeder {
  readonly #log: Log;
  readonly #templates: Templates;
  readonly #source: SourceName;
  readonly #session: string;
  readonly #ordinals: Record<string, number> = {};
  readonly #frames: Record<string, number> = {};
  readonly #ordinalsWritten: Record<string, number> = {};
  readonly #runners: number;
  #made = 0;
  #lastSeq = 0;
  #first = 0;
  #atMs = Date.now();

  private constructor(log: Log, found: Templates, developer: string) {
    this.#log = log;
    this.#templates = found;
    this.#source = sourceName({ workspace: "default", developer, project: "shop", upstream: "skaffold" });
    this.#session = `01BENCH${developer.toUpperCase().replaceAll(/[^A-Z0-9]/g, "0")}`.padEnd(26, "0").slice(0, 26);
    this.#runners = Math.max(1, ...found.frames.map(({ operation }) => operation?.runner ?? 0));
  }

  static async begin(bench: Bench, log: Log, developer: string): Promise<Seeder> {
    const seeder = new Seeder(log, await templates(bench), developer);
    seeder.#first = sequenceOf(await seeder.#publish(seeder.#templates.opening.map((event) => seeder.#opening(event))));
    return seeder;
  }

  /** Resolves when so many more events are in the log. */
  async write(count: number): Promise<SeededSource> {
    for (let left = count; left > 0; ) {
      const count = Math.min(left, atOnce);
      await this.#publish(Array.from({ length: count }, () => this.#next()));
      left -= count;
    }
    return this.#seeded();
  }

  #seeded(): SeededSource {
    const [first, last, { epoch }] = [this.#first, this.#lastSeq, this.#log];
    return {
      source: this.#source,
      session: this.#session,
      events: this.#templates.opening.length + this.#made,
      frames: { v1: this.#frames.v1 ?? 0, v2: this.#frames.v2 ?? 0 },
      positionAt: (part) => formatPosition({ epoch, offset: endOf(Math.round(first + (last - first) * part)) }),
    };
  }

  #opening(template: Event): Event {
    const ordinal = this.#count("tapedeck");
    const session = template.session === "" ? "" : this.#session;
    return { ...copyOf(template), ...this.#identity("tapedeck", ordinal), session };
  }

  #next(): Event {
    const { frames } = this.#templates;
    const pass = Math.floor(this.#made / frames.length);
    const template = frames[this.#made % frames.length] as Event;
    this.#made++;
    this.#atMs += 1;
    const { channel, part, operation } = template;
    const ordinal = this.#count(channel);
    if (part === 0) this.#frames[channel] = (this.#frames[channel] ?? 0) + 1;
    const at = { seconds: BigInt(Math.floor(this.#atMs / 1_000)), nanos: (this.#atMs % 1_000) * 1_000_000 };
    return {
      ...template,
      ...this.#identity(channel, ordinal),
      session: this.#session,
      frame_ordinal: BigInt(this.#frames[channel] ?? 0),
      occurred_at: at,
      observed_at: at,
      // Each pass begins with a new configuration, so its operations are new ones.
      operation: operation && { ...operation, runner: operation.runner + pass * this.#runners },
    };
  }

  #identity(channel: string, ordinal: number) {
    const owner = channel === "tapedeck" ? this.#source : this.#session;
    return { id: `${owner}.${channel}.${ordinal}`, source: this.#source, ordinal: BigInt(ordinal) };
  }

  #count(channel: string): number {
    const ordinal = (this.#ordinals[channel] ?? 0) + 1;
    this.#ordinals[channel] = ordinal;
    return ordinal;
  }

  /** In messages as ingest makes them. Resolves with where the first event stands. */
  async #publish(events: readonly Event[]): Promise<Offset> {
    const writer = "01BENCHWRITER0000000000000";
    let first: Offset | undefined;
    for (let left = events.flatMap((event) => groupsOf([this.#written(event)])); left.length > 0; ) {
      const { events: batch, groups } = nextBatch(left);
      const published = await this.#log.writer.publish(this.#source, writer, batch, this.#lastSeq);
      if (published.outcome !== "acknowledged") throw new Error(`seeding: ${JSON.stringify(published)}`);
      this.#lastSeq = published.seq;
      first ??= offsetOf(published.seq);
      left = left.slice(groups);
    }
    return first ?? logStart;
  }

  #written(event: Event): NewEvent {
    const { channel, kind, session } = event;
    this.#ordinalsWritten[channel] = Number(event.ordinal);
    return {
      subject: messageSubject(this.#source, channel, kind, kind.endsWith(".written") ? "text" : "facts"),
      session,
      event: encodeEvent(event),
      cursor: { session: this.#session, ordinals: { ...this.#ordinalsWritten }, frames: { ...this.#frames } },
    };
  }
}

/** One source with so many events. */
export async function seed(bench: Bench, log: Log, developer: string, count: number): Promise<SeededSource> {
  const seeder = await Seeder.begin(bench, log, developer);
  return seeder.write(count);
}
