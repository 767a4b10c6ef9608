import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loadRecording, recordingFolders } from "@tapedeck/fakes/skaffold/recording";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { isKind } from "@tapedeck/shared/events/kinds";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fact } from "../fact.ts";
import { normalizer } from "./normalizer.ts";

const root = fileURLToPath(new URL("../../../../../packages/fakes/recordings/skaffold", import.meta.url));
const recordings = recordingFolders(root).map(loadRecording);
const channels = normalizer.channels.map(({ name, reader }) => ({ name: name as "v1" | "v2" | "logs", reader }));
const framesOf = (name: "v1" | "v2" | "logs") =>
  recordings.map(({ messages }) => messages[name].map(({ bytes }) => bytes)).filter((frames) => frames.length > 0);

/** The event that record writes. Readers may use the original of all that record adds, and it can be absent. */
function recorded(fact: Fact, original?: Uint8Array): Event {
  const bare = Event.decode(new Uint8Array());
  const kept = original && {
    type: "",
    bytes: Buffer.from(original),
    size: 0n,
    sha256: Buffer.alloc(0),
    head: Buffer.alloc(0),
  };
  return {
    ...bare,
    ...fact,
    occurred_at: fact.occurredAt,
    inferred: false,
    outcome: fact.outcome ?? 0,
    original: kept,
  };
}

/** "build.started 3, …" in order of first appearance. */
function counts(facts: readonly Fact[]): string {
  const byKind = new Map<string, number>();
  for (const { kind } of facts) byKind.set(kind, (byKind.get(kind) ?? 0) + 1);
  return [...byKind].map(([kind, count]) => `${kind} ${count}`).join(", ");
}

/** One line per loop: "1/2 loop.started build.started:web …". */
function story(facts: readonly Fact[]): string[] {
  const lines: string[] = [];
  let place = "";
  for (const { kind, subject, operation } of facts) {
    const here = `${operation?.runner}/${operation?.loop}`;
    if (here !== place) lines.push(here);
    place = here;
    lines[lines.length - 1] += ` ${kind}${subject ? `:${subject}` : ""}`;
  }
  return lines;
}

describe("the facts of recordings", () => {
  it.each(recordings.map((recording) => ({ recording, name: recording.name })))("$name", ({ recording }) => {
    const reported = channels.map(({ name, reader }) => {
      const { read } = reader();
      const facts = recording.messages[name].flatMap(({ bytes }) => read(bytes));
      expect(facts.every(({ kind }) => isKind(kind))).toBe(true);
      expect(facts.filter(({ kind }) => kind === "upstream.unreadable")).toEqual([]);
      expect(facts.every(({ occurredAt }) => occurredAt !== undefined)).toBe(true);
      return { name, facts };
    });
    const factsOf = (expected: string) => reported.find(({ name }) => name === expected)?.facts ?? [];
    expect({ v1: story(factsOf("v1")), v2: counts(factsOf("v2")), logs: counts(factsOf("logs")) }).toMatchSnapshot();
  });

  it("covers every recorded scenario with a stream", () => {
    expect(readdirSync(root).filter((name) => /^\d/.test(name)).length).toBeGreaterThan(30);
    expect(recordings.length).toBeGreaterThan(30);
  });

  it("numbers runners and loops alike on v1 and v2", () => {
    for (const { messages, name } of recordings) {
      if (messages.v2.length === 0 || name.startsWith("17-")) continue;
      const last = (channel: "v1" | "v2") => {
        const { read } = channels.find((known) => known.name === channel)?.reader() ?? expect.fail();
        return messages[channel].map(({ bytes }) => read(bytes)[0].operation).at(-1);
      };
      if (messages.v1.length > 0)
        expect(last("v2"), name).toMatchObject({ runner: last("v1")?.runner, loop: last("v1")?.loop });
    }
  });

  it("has one render for each render phase", () => {
    const { read } = channels[1]?.reader() ?? expect.fail();
    const frames = recordings.find(({ name }) => name.startsWith("04-"))?.messages.v2 ?? [];
    const renders = frames.flatMap(({ bytes }) => read(bytes)).filter(({ kind }) => kind.startsWith("render."));
    expect(renders.map(({ kind, operation }) => `${operation?.loop} ${kind}`)).toEqual([
      "1 render.started",
      "1 render.succeeded",
      "2 render.started",
      "2 render.succeeded",
      "3 render.started",
      "3 render.succeeded",
      "4 render.started",
      "4 render.failed",
    ]);
  });
});

describe.each(channels)("a reader of $name", ({ name, reader }) => {
  const frames = framesOf(name);

  it("gives a fact for any bytes", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 20 }), (noise) => {
        const { read } = reader();
        for (const bytes of noise) expect(read(bytes)).not.toHaveLength(0);
      }),
    );
  });

  it("gives a fact for any frame that was cut or damaged", () => {
    const all = frames.flat();
    fc.assert(
      fc.property(fc.nat(all.length - 1), fc.nat(), fc.nat(), fc.nat(255), (index, end, at, byte) => {
        const { read } = reader();
        const damaged = Buffer.from(all[index] ?? []);
        damaged[at % damaged.length] = byte;
        expect(read(damaged)).not.toHaveLength(0);
        expect(read(damaged.subarray(0, end % (damaged.length + 1)))).not.toHaveLength(0);
      }),
      { numRuns: 1000 },
    );
  });

  it("goes on after a restart as if it had read everything", () => {
    fc.assert(
      fc.property(
        fc.nat(frames.length - 1),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.boolean(),
        (index, part, kept) => {
          const stream = frames[index] ?? [];
          const stop = Math.floor(part * stream.length);
          const straight = reader();
          const facts = stream.map((bytes) => straight.read(bytes));
          const resumed = reader();
          stream.slice(0, stop).forEach((bytes, at) => {
            for (const fact of facts[at] ?? expect.fail()) resumed.resume(recorded(fact, kept ? bytes : undefined));
          });
          expect(stream.slice(stop).map((bytes) => resumed.read(bytes))).toEqual(facts.slice(stop));
        },
      ),
      { numRuns: 60 },
    );
  });

  it("reads the same time as timestampOf, and can be written to the log", () => {
    const channel = normalizer.channels.find((known) => known.name === name) ?? expect.fail();
    for (const stream of frames.slice(0, 8)) {
      const { read } = channel.reader();
      for (const bytes of stream) {
        const [fact] = read(bytes);
        expect(channel.timestampOf(bytes)).toEqual(fact.occurredAt);
        expect(Event.decode(Event.encode(recorded(fact)).finish()).kind).toBe(fact.kind);
      }
    }
  });
});
