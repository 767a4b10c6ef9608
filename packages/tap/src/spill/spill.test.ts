import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ItemContent } from "../connection-items.ts";
import type { TapItem } from "../tap.ts";
import { openSpill, type Spill, type SpillOptions, type SpillState } from "./spill.ts";
import { claimOrphan, orphanedSpills, readSpillFolder, segmentPath, writeTapFile } from "./spill-folder.ts";

const hello = {
  developer: "alice",
  project: "shop",
  upstream: "skaffold",
  tap: "01TAP",
  redact: "on",
  labels: { branch: "main" },
};
const at = { seconds: 1n, nanos: 2 };

function frame(text: string, channel = "v1"): TapItem {
  const value = { channel, bytes: Buffer.from(text), more: false };
  return { connection: "01CONN", at, what: { $case: "frame", value } };
}

function closed(): TapItem {
  return { connection: "01CONN", at, what: { $case: "closed", value: { reason: "", process_ended: true } } };
}

function folder(): string {
  const root = mkdtempSync(join(tmpdir(), "spill-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return join(root, hello.tap);
}

/** Frames of 1,000 bytes count about 1,256: room for a few in memory, and a few files of a few. */
const small = { memoryBytes: 5_000, diskBytes: 60_000, segmentBytes: 8_000 };
const open = (dir: string, options: Partial<SpillOptions> = {}) => openSpill({ dir, hello, ...small, ...options });
const long = (index: number) => `${index}`.padEnd(1_000, ".");

/** What is held now, from an index on. */
async function held(spill: Spill, from = 1n): Promise<Item[]> {
  const { nextIndex, firstIndex } = spill.state();
  const items: Item[] = [];
  if (firstIndex >= nextIndex) return items;
  for await (const item of spill.read(from, new AbortController().signal)) {
    items.push(item);
    if (item.index === nextIndex - 1n) break;
  }
  return items;
}

const textOf = ({ what }: Item) => (what?.$case === "frame" ? what.value.bytes.toString() : what?.$case);
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe("a spill", () => {
  it("gives items back in order, with indexes from 1, and forgets what is committed", async () => {
    await using spill = await open(folder());
    expect([spill.append(frame("a")), spill.append(closed()), spill.append(frame("b"))]).toEqual([1n, 2n, 3n]);
    expect((await held(spill)).map(textOf)).toEqual(["a", "closed", "b"]);
    spill.commit(2n);
    expect((await held(spill)).map(textOf)).toEqual(["b"]);
    expect(spill.state()).toMatchObject({ firstIndex: 3n, nextIndex: 4n, committed: 2n, diskBytes: 0 });
  });

  it("lives on when somebody removes its folder", async () => {
    const dir = folder();
    await using spill = await open(dir);
    for (const index of range(1, 12)) spill.append(frame(long(index)));
    rmSync(dir, { recursive: true });
    for (const index of range(13, 40)) spill.append(frame(long(index)));
    expect(existsSync(dir)).toBe(true);
    expect((await held(spill)).map(textOf)).toContain(long(40));
    for (const index of range(1, 40)) spill.commit(BigInt(index));
    expect(spill.state().diskBytes).toBe(0);
  });

  it("replaces the file that says whose it is, and never has half of it", async () => {
    const dir = folder();
    writeTapFile(dir, { hello, committed: 1n });
    linkSync(join(dir, "tap.json"), join(dir, "before"));
    const before = readFileSync(join(dir, "before"), "utf8");
    writeTapFile(dir, { hello, committed: 2n });
    expect(readFileSync(join(dir, "before"), "utf8")).toBe(before);
    expect(readFileSync(join(dir, "tap.json"), "utf8")).not.toBe(before);
  });

  it("gives what is still to come, and ends with the signal", async () => {
    await using spill = await open(folder());
    const stop = new AbortController();
    const reader = spill.read(1n, stop.signal);
    const first = reader.next();
    spill.append(frame("late"));
    expect(textOf((await first).value as Item)).toBe("late");
    const second = reader.next();
    stop.abort();
    expect(await second).toEqual({ value: undefined, done: true });
  });

  it("touches no disk as long as memory is enough", async () => {
    const dir = folder();
    await using spill = await open(dir);
    for (const index of range(1, 3)) spill.append(frame(long(index)));
    expect(existsSync(dir)).toBe(false);
  });

  it("goes on in files, in order, and takes them away when they are committed", async () => {
    const dir = folder();
    const spill = await open(dir);
    for (const index of range(1, 30)) spill.append(frame(long(index)));
    expect(readdirSync(dir).length).toBeGreaterThan(3);
    expect((await held(spill)).map(textOf)).toEqual(range(1, 30).map(long));
    spill.commit(20n);
    expect((await held(spill)).map(textOf)).toEqual(range(21, 30).map(long));
    spill.commit(30n);
    expect(spill.state()).toMatchObject({ memoryBytes: 0, diskBytes: 0 });
    await spill[Symbol.asyncDispose]();
    expect(existsSync(dir)).toBe(false);
  });

  it("loses nothing to a reader that is read from while it spills and commits", async () => {
    await using spill = await open(folder());
    const stop = new AbortController();
    const got: (string | undefined)[] = [];
    let appended = 0;
    const append = (count: number) => {
      for (let more = 0; more < count && appended < 200; more++) spill.append(frame(long(++appended)));
    };
    append(20);
    for await (const item of spill.read(1n, stop.signal)) {
      got.push(textOf(item));
      append(got.length % 3);
      if (got.length % 7 === 0) spill.commit(item.index);
      if (got.length === 200) break;
      if (got.length === appended) append(1);
    }
    expect(got).toEqual(range(1, 200).map(long));
    expect(spill.state().dropped).toBe(0n);
  });

  it("past both bounds drops the newest frames, and says so when there is room", async () => {
    await using spill = await open(folder());
    for (const index of range(1, 100)) spill.append(frame(long(index), index % 2 === 0 ? "v2" : "v1"));
    const before = spill.state();
    expect(before.diskBytes + before.memoryBytes).toBeLessThanOrEqual(small.memoryBytes + small.diskBytes);
    const kept = Number(before.nextIndex) - 1;
    expect(Number(before.dropped)).toBe(100 - kept);
    const read = await held(spill);
    expect(read.map(textOf)).toEqual(range(1, kept).map(long));
    spill.commit(BigInt(kept) / 2n);
    spill.append(frame("after"));
    const rest = await held(spill, BigInt(kept) + 1n);
    expect(rest.map(textOf)).toEqual(["dropped", "dropped", "after"]);
    const reported = rest.flatMap(({ what }) => (what?.$case === "dropped" ? [what.value] : []));
    expect(reported.reduce((sum, { count }) => sum + count, 0n)).toBe(before.dropped);
    expect(reported.reduce((sum, { bytes }) => sum + bytes, 0n)).toBe(before.dropped * 1_000n);
    expect(reported.map(({ channel, reason }) => [channel, reason]).sort()).toEqual([
      ["v1", "spill_full"],
      ["v2", "spill_full"],
    ]);
  });

  it("never drops what is not a frame, and reports drops before it", async () => {
    await using spill = await open(folder(), { diskBytes: 0 });
    for (const index of range(1, 10)) spill.append(frame(long(index)));
    expect(spill.append(closed())).toBeDefined();
    expect((await held(spill)).map(textOf)).toEqual([long(1), long(2), long(3), "dropped", "closed"]);
  });

  it("says when everything is committed", async () => {
    await using spill = await open(folder());
    spill.append(frame("a"));
    const drained = spill.drained(new AbortController().signal);
    spill.commit(1n);
    await drained;
    spill.append(frame("b"));
    await spill.drained(AbortSignal.abort());
  });

  it("follows a model, whatever happens in whatever order", async () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ do: fc.constant("append" as const), bytes: fc.integer({ min: 0, max: 3_000 }) }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ do: fc.constant("commit" as const), part: fc.double({ min: 0, max: 1, noNaN: true }) }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("read" as const) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("reopen" as const) }) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const dir = join(mkdtempSync(join(tmpdir(), "spill-")), hello.tap);
        let spill = await open(dir, { diskBytes: 1_000_000 });
        const model = new Map<bigint, string>();
        let committed = 0n;
        for (const each of steps) {
          if (each.do === "append") {
            const text = `${model.size}`.padEnd(each.bytes, ".");
            model.set(spill.append(frame(text)) as bigint, text);
          } else if (each.do === "commit") {
            committed += BigInt(Math.floor(Number(spill.state().nextIndex - 1n - committed) * each.part));
            spill.commit(committed);
          } else if (each.do === "reopen" && committed < spill.state().nextIndex - 1n) {
            spill.persist();
            await spill[Symbol.asyncDispose]();
            spill = await open(dir, { diskBytes: 1_000_000 });
          }
          const expected = [...model].filter(([index]) => index > committed).map(([, text]) => text);
          expect((await held(spill, committed + 1n)).map(textOf)).toEqual(expected);
        }
        await spill[Symbol.asyncDispose]();
        rmSync(join(dir, ".."), { recursive: true, force: true });
      }),
      { numRuns: 40 },
    );
  });
});

describe("a spill that is full", () => {
  const text = "x".repeat(1_000);
  const bytes = Buffer.from(text);
  /** One item of every kind, each large. The compiler asks for a new kind. */
  const contents: { readonly [Kind in ItemContent["$case"]]: Extract<ItemContent, { $case: Kind }>["value"] } = {
    dialled: { address: text, channels: ["v1"] },
    identified: { identity: text, version: "" },
    frame: { channel: "v1", bytes, more: false },
    described: { channel: "v1", state: bytes },
    channel_ended: { channel: "v1", code: 13, message: text, final: true },
    channel_filled: { channel: "v1" },
    labelled: { labels: { branch: text }, since: undefined },
    recorded: { events: [bytes, bytes], more: false },
    recorded_end: { events: 2n },
    dropped: { channel: "v1", count: 1n, bytes: 1n, reason: text },
    closed: { reason: text, process_ended: false },
  };
  const kinds = Object.keys(contents) as (keyof typeof contents)[];
  const item = (kind: keyof typeof contents, connection = "01CONN"): TapItem => {
    const what = { $case: kind, value: contents[kind] } as ItemContent;
    return { connection, at, what };
  };
  const sizes = { memoryBytes: 20_000, diskBytes: 40_000, segmentBytes: 8_000 };
  const sizeNow = ({ memoryBytes, diskBytes }: SpillState) => memoryBytes + diskBytes;

  it.each(kinds)("keeps its bounds whatever number of items of kind %s comes", async (kind) => {
    await using spill = await open(folder(), sizes);
    for (let n = 0; n < 200; n++) spill.append(item(kind));
    expect(sizeNow(spill.state())).toBeLessThanOrEqual(60_000);
    spill.commit(spill.state().nextIndex - 1n);
    // What waited is small: one item of a kind, or a count.
    expect(sizeNow(spill.state())).toBeLessThan(4_000);
    const dropped = (await held(spill)).flatMap(({ what }) => (what?.$case === "dropped" ? what.value : []));
    if (kind === "frame" || kind === "described") {
      expect(dropped).toMatchObject([{ channel: "v1", count: spill.state().dropped }]);
      expect(spill.state().dropped).toBeGreaterThan(100n);
    }
  });

  it("forgets connections that came and went meanwhile, and says what they had brought", async () => {
    await using spill = await open(folder(), sizes);
    spill.append(item("dialled", "C0"));
    while (spill.append(item("frame", "C0")) !== undefined);
    spill.append(item("closed", "C0"));
    for (let n = 1; n <= 1_000; n++) {
      for (const kind of ["dialled", "identified", "frame", "described", "closed"] as const)
        spill.append(item(kind, `C${n}`));
    }
    for (const kind of ["dialled", "frame"] as const) spill.append(item(kind, "now"));
    expect(sizeNow(spill.state())).toBeLessThanOrEqual(60_000);
    const { nextIndex } = spill.state();
    spill.commit(nextIndex - 1n);
    spill.append(item("frame", "now"));
    const after = (await held(spill)).map(({ connection, what }) => [
      connection,
      what?.$case,
      ...(what?.$case === "dropped" ? [what.value.count, what.value.reason] : []),
    ]);
    expect(after).toEqual([
      ["C0", "dropped", 1n, "spill_full"],
      ["C0", "closed"],
      ["", "dropped", 1_000n, "spill_full"],
      ["", "dropped", 1_000n, "spill_full: answers about its state"],
      ["now", "dialled"],
      ["now", "dropped", 1n, "spill_full"],
      ["now", "frame"],
    ]);
    expect(spill.state().dropped).toBe(2_002n);
  });
});

describe("after the end of its process", () => {
  it("a spill that was persisted has everything, and whose it is", async () => {
    const dir = folder();
    const first = await open(dir);
    for (const index of range(1, 3)) first.append(frame(long(index)));
    first.commit(1n);
    first.persist();
    await first[Symbol.asyncDispose]();
    await using second = await openSpill({ dir });
    expect(second.hello()).toMatchObject(hello);
    expect(second.state()).toMatchObject({ firstIndex: 2n, nextIndex: 4n, committed: 1n });
    expect((await held(second)).map(textOf)).toEqual([long(2), long(3)]);
    expect((await held(second))[0]).toMatchObject({ connection: "01CONN", at });
  });

  it("one that crashed has the oldest, so that what is said again can follow in order", async () => {
    const dir = folder();
    const first = await open(dir);
    for (const index of range(1, 10)) first.append(frame(long(index)));
    const onDisk = (await readSpillFolder(dir))?.segments.reduce((sum, { bytes }) => sum + bytes, 0) ?? 0;
    expect(onDisk).toBeGreaterThan(0);
    await using second = await openSpill({ dir });
    expect((await held(second)).map(textOf)).toEqual(range(1, 7).map(long));
    expect(second.append(frame("again"))).toBe(8n);
  });

  it("one whose first items are missing holds an item in their place", async () => {
    const dir = folder();
    await using first = await open(dir, { memoryBytes: 0, segmentBytes: 1 });
    for (const index of range(1, 5)) first.append(frame(long(index)));
    first.commit(3n);
    // The recorder has got them, but that was not written down before the crash.
    writeTapFile(dir, { hello, committed: 0n });
    await using second = await openSpill({ dir });
    expect((await held(second)).map(textOf)).toEqual(["dropped", long(4), long(5)]);
    expect((await held(second))[0]).toMatchObject({ index: 3n, what: { value: { reason: "crash" } } });
    second.commit(3n);
    expect((await held(second)).map(textOf)).toEqual([long(4), long(5)]);
  });

  it("one with several gaps keeps the items in their places when it is persisted", async () => {
    const dir = folder();
    await using first = await open(dir, { memoryBytes: 0, segmentBytes: 1 });
    for (const index of range(1, 5)) first.append(frame(long(index)));
    for (const lost of [2n, 4n]) rmSync(segmentPath(dir, lost));
    {
      await using second = await open(dir);
      second.append(frame(long(6)));
      second.persist();
    }
    await using third = await openSpill({ dir });
    expect((await held(third)).map(textOf)).toEqual([long(1), "dropped", long(3), "dropped", long(5), long(6)]);
  });

  it("a torn last record is left out, and its index is used again", async () => {
    const dir = folder();
    await using first = await open(dir, { memoryBytes: 0 });
    for (const index of range(1, 3)) first.append(frame(long(index)));
    const path = segmentPath(dir, 1n);
    truncateSync(path, 2_500);
    await using second = await openSpill({ dir, memoryBytes: 0 });
    expect((await held(second)).map(textOf)).toEqual([long(1), long(2)]);
    expect(second.append(frame("again"))).toBe(3n);
    expect((await held(second)).map(textOf)).toEqual([long(1), long(2), "again"]);
  });

  it("a file that is no record at all is left out", async () => {
    const dir = folder();
    await using first = await open(dir, { memoryBytes: 0 });
    first.append(frame("whole"));
    appendFileSync(segmentPath(dir, 1n), Buffer.alloc(50, 0xff));
    writeFileSync(segmentPath(dir, 7n), "no record");
    await using second = await openSpill({ dir });
    expect((await held(second)).map(textOf)).toEqual(["whole"]);
  });

  it("a record that has changed on the disk ends its file", async () => {
    const dir = folder();
    await using first = await open(dir, { memoryBytes: 0 });
    for (const text of ["one", "two", "three"]) first.append(frame(text));
    const path = segmentPath(dir, 1n);
    const bytes = readFileSync(path);
    bytes.write("TWO", bytes.indexOf("two"));
    writeFileSync(path, bytes);
    await using second = await openSpill({ dir });
    expect((await held(second)).map(textOf)).toEqual(["one"]);
  });

  it("orphans are those whose process is gone", async () => {
    const dir = folder();
    const root = join(dir, "..");
    await using spill = await open(dir);
    spill.append(frame("a"));
    spill.persist();
    expect(await orphanedSpills(root)).toEqual([]);
    writeTapFile(dir, { hello, to: "https://tapedeck.example:7051", committed: 0n });
    expect(claimOrphan(dir)).toBeUndefined();
    const file = join(dir, "tap.json");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace(`"pid":${process.pid}`, `"pid":${2 ** 22 + 1}`));
    const orphan = { dir, to: "https://tapedeck.example:7051", hello: { developer: "alice", project: "shop" } };
    expect(await orphanedSpills(root)).toMatchObject([orphan]);
    expect(await orphanedSpills(join(root, "nowhere"))).toEqual([]);
    {
      using claimed = claimOrphan(dir);
      expect(claimed).toBeDefined();
      expect(claimOrphan(dir)).toBeUndefined();
    }
    using again = claimOrphan(dir);
    expect(again).toBeDefined();
  });

  it("a spill that this process has left is an orphan too, and keeps whom it is meant for", async () => {
    const dir = folder();
    const root = join(dir, "..");
    {
      await using spill = await open(dir, { to: "127.0.0.1:7051" });
      spill.append(frame("a"));
      spill.persist();
      expect(await orphanedSpills(root)).toEqual([]);
    }
    expect(await orphanedSpills(root)).toMatchObject([{ dir, to: "127.0.0.1:7051" }]);
    {
      await using spill = await open(dir, { to: "127.0.0.1:9051" });
      spill.rename({ ...hello, project: "shop-2" });
    }
    expect(await orphanedSpills(root)).toMatchObject([{ to: "127.0.0.1:7051", hello: { project: "shop-2" } }]);
  });

  it("a folder without a spill is refused when nobody says whose it would be", async () => {
    await expect(openSpill({ dir: folder() })).rejects.toThrow("holds no spill");
  });
});
