import { Image, ListImagesResponse, ListPodsResponse, Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { HostDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { listOf } from "@tapedeck/shared/rkt/entries";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { describe, expect, it, vi } from "vitest";
import { type ObservationOutcome, outcomesOf } from "../inventory/observing.ts";
import { described, fact, frame, gap, unreadable } from "../inventory/testing/outcome-fields.ts";
import { HostWatcher } from "./host-watcher.ts";
import { mask } from "./mask.ts";
import { eventsOf, image, listOfPods, type Play, play, pod, removedFacts, startedFacts } from "./testing/host-play.ts";

type Frame = Extract<ObservationOutcome, { what: "frame" }>;

function frames({ record }: Play): Frame[] {
  return record.flatMap(({ seen }) => (seen.what === "frame" ? [seen] : []));
}

function descriptions(harness: Play): Frame[] {
  return frames(harness).filter(({ facts }) => facts[0].kind === "inventory.described");
}

const podIds = ({ original }: Frame) =>
  ListPodsResponse.decode(original?.bytes ?? Buffer.alloc(0)).pods.map(({ id }) => id);

describe("the first observation of all", () => {
  it("describes the host, in the order of ids, and emits nothing else", () => {
    const harness = play();
    const listed = [pod("b", { state: "RUNNING", codes: { a: 7 } }), pod("a", { state: "ABORTED_PREPARE" })];
    expect(harness.pods(1_000, ...listed)).toEqual([described]);
    expect(harness.images(1_000, image("sha512-1"))).toEqual([described]);
    const [pods, images] = descriptions(harness);
    expect(pods?.original?.type).toBe("v1alpha.ListPodsResponse");
    expect(pods && podIds(pods)).toEqual(["a", "b"]);
    expect(pods?.facts).toEqual([
      {
        kind: "inventory.described",
        summary: "the host has 2 pods",
        detail: { $case: "host", value: HostDetail.create({ parts: 1, entries: 2 }) },
      },
    ]);
    expect(images?.original?.type).toBe("v1alpha.ListImagesResponse");
    expect(ListImagesResponse.decode(images?.original?.bytes ?? Buffer.alloc(0)).images).toEqual([image("sha512-1")]);
    expect(images?.facts[0].summary).toBe("the host has 1 image");
    expect([harness.same("pods", 2_000), harness.same("images", 2_000)]).toEqual([[], []]);
  });

  it("describes an empty host in one part without bytes", () => {
    const harness = play();
    expect(harness.pods(1_000)).toEqual([described]);
    expect(descriptions(harness)[0]).toMatchObject({
      original: { bytes: new Uint8Array(0) },
      facts: [{ summary: "the host has 0 pods", detail: { value: { part: 0, parts: 1, entries: 0 } } }],
    });
    expect(harness.pods(2_000, pod("p", { state: "PREPARED" }))).toEqual([frame(fact("pod.prepared", "p"))]);
  });

  it("is the first good one: nothing is known of a host that could not be observed", () => {
    const harness = play();
    expect([
      harness.failed("pods", 1),
      harness.same("pods", 2),
      harness.inspected(3, pod("p", { state: "RUNNING" })),
    ]).toEqual([[], [], []]);
    expect(harness.pods(4)).toEqual([described]);
  });

  it("takes parts of at most 512 KiB, and one of its own for what is larger", () => {
    const harness = play();
    const sized = (id: string, kib: number) =>
      pod(id, { state: "EXITED", more: { manifest: Buffer.alloc(kib * 1024, 0x20) } });
    const kib: Readonly<Record<string, number>> = { e: 1, a: 200, b: 300, c: 20, d: 600, A: 600 };
    harness.pods(1_000, ...Object.entries(kib).map(([id, size]) => sized(id, size)));
    const parts = descriptions(harness);
    expect(parts.map(podIds)).toEqual([["A"], ["a", "b"], ["c"], ["d"], ["e"]]);
    expect(parts.map(({ facts }) => facts[0].detail)).toMatchObject(
      [0, 1, 2, 3, 4].map((part) => ({ value: { part, parts: 5, entries: 6 } })),
    );
    const later = play();
    for (const event of eventsOf(harness.record)) later.watcher.resume(event);
    const changed = ["A", "a", "b", "c", "d", "e"].map((id) => sized(id, id === "e" ? 2 : (kib[id] ?? 0)));
    expect([later.pods(2_000, ...changed), later.pods(3_000, ...changed)]).toEqual([
      [frame(fact("pod.changed", "e"))],
      [],
    ]);
  });
});

describe("a later description", () => {
  const app = (code: number) => pod("p", { state: "RUNNING", codes: { a: code } });

  it("comes at the end of the observation that reached so many events of the channel", () => {
    const harness = play({ describeAfter: 4 });
    harness.pods(1, pod("p", { state: "PREPARED" }));
    harness.images(1);
    expect(harness.pods(2, app(0))).toEqual([frame(fact("pod.started", "p"), fact("app.started", "p/a"))]);
    expect(harness.images(2, image("sha512-1"))).toEqual([frame(fact("image.imported", "sha512-1"))]);
    expect(harness.pods(3, app(7), pod("q", { state: "PREPARED" }))).toEqual([
      frame(fact("app.exited", "p/a", { exit_code: 7 })),
      frame(fact("pod.prepared", "q")),
      described,
    ]);
    const description = descriptions(harness).at(-1);
    expect(ListPodsResponse.decode(description?.original?.bytes ?? Buffer.alloc(0)).pods).toEqual([
      app(7),
      pod("q", { state: "PREPARED" }),
    ]);
    expect(harness.pods(4, app(8))).toEqual([
      frame(fact("app.started", "p/a", { inferred: true }), fact("app.exited", "p/a", { exit_code: 8 })),
    ]);
  });

  it("is counted from the one before also by a watcher that was resumed", () => {
    const first = play({ describeAfter: 4 });
    first.pods(1, pod("p", { state: "PREPARED" }));
    first.pods(2, app(0));
    const second = play({ describeAfter: 4 });
    for (const event of eventsOf(first.record)) second.watcher.resume(event);
    expect(second.pods(3, app(7), pod("q", { state: "PREPARED" }))).toEqual([
      frame(fact("app.exited", "p/a", { exit_code: 7 })),
      frame(fact("pod.prepared", "q")),
      described,
    ]);
  });

  it("comes after a thousand", () => {
    const harness = play();
    harness.pods(1);
    const many = Array.from({ length: 999 }, (_, index) => pod(`p${index}`, { state: "PREPARED" }));
    expect(harness.pods(2, ...many)).not.toContainEqual(described);
    expect(harness.pods(3, ...many, pod("last", { state: "PREPARED" }))).toEqual([
      frame(fact("pod.prepared", "last")),
      described,
    ]);
  });

  it("has what is accepted: not what is held, not what is gone", () => {
    const harness = play({ describeAfter: 3 });
    harness.pods(1, app(7), pod("gone", { state: "PREPARED" }));
    harness.pods(2, app(7));
    expect(harness.pods(3, app(7))).toEqual([frame(fact("pod.collected", "gone", { phase: "never-ran" }))]);
    const held = pod("held", { state: "ABORTED_PREPARE" });
    const exited = pod("p", { state: "EXITED", codes: { a: 0 } });
    expect(harness.pods(4, exited, held, pod("q", { state: "PREPARED" }), pod("r", { state: "PREPARED" }))).toEqual([
      frame(fact("pod.exited", "p")),
      frame(fact("pod.prepared", "q")),
      frame(fact("pod.prepared", "r")),
      described,
    ]);
    const { pods } = ListPodsResponse.decode(descriptions(harness).at(-1)?.original?.bytes ?? Buffer.alloc(0));
    expect(pods.map(({ id, apps }) => [id, apps[0]?.exit_code])).toEqual([
      ["p", 7],
      ["q", 0],
      ["r", 0],
    ]);
    expect(harness.pods(5, held)).toEqual([frame(fact("pod.prepare_aborted", "held"))]);
  });

  it("names the pods that are gone, which emit nothing twice when they come back, until the next one", () => {
    const harness = play({ describeAfter: 6 });
    const run = (id: string, state: "RUNNING" | "PREPARED" = "RUNNING") => pod(id, { state, codes: { a: 0 } });
    const many = (from: number) => [0, 1, 2, 3, 4, 5].map((n) => run(`n${from + n}`, "PREPARED"));
    harness.pods(1, run("p"), run("q"));
    harness.pods(2);
    // All that was known of p and q ends with this, and is described at once.
    expect(harness.pods(3)).toEqual([frame(...removedFacts("p")), frame(...removedFacts("q")), described]);
    const mark = () => descriptions(harness).at(-1)?.facts[0].detail?.value;
    expect(mark()).toMatchObject({ gone: ["p", "q"], returned: [] });
    const resumed = () => {
      const later = play({ describeAfter: 6 });
      for (const event of eventsOf(harness.record)) later.watcher.resume(event);
      return later;
    };
    expect([resumed().pods(4, run("p")), harness.pods(4, run("p"))]).toEqual([
      [frame(fact("pod.changed", "p"))],
      [frame(fact("pod.changed", "p"))],
    ]);
    harness.pods(5, run("p"), ...many(0));
    expect(mark()).toMatchObject({ gone: [], returned: ["p"] });
    // p is there, and its end was emitted for good; of q nothing is known any more.
    const observations = [[run("p"), run("q"), ...many(0)], many(0), many(0)] as const;
    const reported = (on: ReturnType<typeof play>) =>
      observations.map((observation, n) => on.pods(6 + n, ...observation));
    const later = resumed();
    expect(reported(later)).toEqual([
      [frame(...startedFacts("q"))],
      [],
      [frame(fact("pod.changed", "p", { removed: true })), frame(...removedFacts("q")), described],
    ]);
    expect(reported(harness)).toEqual([
      [frame(...startedFacts("q"))],
      [],
      [frame(fact("pod.changed", "p", { removed: true })), frame(...removedFacts("q")), described],
    ]);
  });

  it("ends what is remembered of images that are gone", () => {
    const harness = play({ describeAfter: 5 });
    harness.images(1_000, image("sha512-1", { imported: 1 }));
    harness.images(2_000);
    expect(harness.images(3_000, ...[2, 3, 4, 5].map((n) => image(`sha512-${n}`))).slice(-2)).toEqual([
      frame(fact("image.removed", "sha512-1")),
      described,
    ]);
    const last = () => frames(harness).at(-1)?.facts[0].occurredAt?.seconds;
    expect([harness.images(4_000, image("sha512-1", { imported: 1 })), last()]).toEqual([
      [frame(fact("image.imported", "sha512-1"))],
      1n,
    ]);
  });
});

describe("secrets", () => {
  it("are masked in what is emitted and in what is described, and counted", () => {
    const harness = play({ watcher: new HostWatcher({ mask, settings: {} }, { describeAfter: 2 }) });
    const secret = (id: string, value: string) =>
      pod(id, { state: "PREPARED", more: { annotations: [{ Key: "db-password", value }] } });
    harness.pods(1, secret("p", "hunter2"));
    expect(harness.pods(2, secret("p", "hunter3"))).toEqual([]);
    expect(harness.pods(3, secret("p", "hunter2"), secret("q", "x"), secret("r", "y"))).toEqual([
      frame(fact("pod.prepared", "q")),
      frame(fact("pod.prepared", "r")),
      described,
    ]);
    const originals = frames(harness).map(({ original }) => original);
    expect(originals.map((original) => original?.redacted)).toEqual([1, 1, 1, 3]);
    for (const original of originals)
      expect(Buffer.from(original?.bytes ?? []).toString("latin1")).not.toContain("hunter");
    const later = play({ watcher: new HostWatcher({ mask, settings: {} }, { describeAfter: 1 }) });
    for (const event of eventsOf(harness.record)) later.watcher.resume(event);
    expect(later.pods(4, secret("p", "hunter2"), secret("q", "x"), secret("r", "y"), secret("s", "z"))).toEqual([
      frame(fact("pod.prepared", "s")),
      described,
    ]);
    expect(descriptions(later).at(-1)?.original?.redacted).toBe(4);
  });
});

describe("bytes that can't be read", () => {
  const all = (value: Buffer) => ({ $case: "all", value }) as const;
  const broken = Buffer.from([0x0a, 0x05, 0x01]);
  // Its apps (field 4) are none.
  const oddPod = Buffer.concat([
    Pod.encode(pod("p", { state: "RUNNING" })).finish(),
    Buffer.from([0x22, 0x02, 0x0a, 0x09]),
  ]);

  it("is kept once, and opens a gap when it is a whole list", () => {
    const harness = play();
    const p = pod("p", { state: "RUNNING" });
    harness.pods(1_000, p);
    expect([harness.observation("pods", 2_000, all(broken)), harness.observation("pods", 3_000, all(broken))]).toEqual([
      [unreadable],
      [],
    ]);
    expect(frames(harness).at(-1)).toMatchObject({ original: { type: "v1alpha.ListPodsResponse", bytes: broken } });
    expect(harness.same("pods", 4_000)).toEqual([]);
    expect([harness.pods(5_000, p), harness.pods(6_000, p)]).toEqual([[gap], []]);
    expect(harness.observation("pods", 7_000, all(listOfPods([pod("", { state: "RUNNING" })])))).toEqual([unreadable]);
  });

  it("is kept once, and changes nothing, when it is one of many", () => {
    const harness = play();
    const [p, q] = [pod("p", { state: "RUNNING" }), pod("q", { state: "PREPARED" })];
    harness.pods(1_000, p);
    const odd = all(Buffer.from(listOf([oddPod, Pod.encode(q).finish()])));
    expect([
      harness.observation("pods", 2_000, odd),
      harness.observation("pods", 3_000, odd),
      harness.same("pods", 4_000),
    ]).toEqual([[unreadable, frame(fact("pod.prepared", "q"))], [], []]);
    expect(frames(harness).at(-2)).toMatchObject({ original: { type: "v1alpha.Pod", bytes: oddPod } });
    expect(harness.pods(5_000, pod("p", { state: "RUNNING", codes: { a: 7 } }), q)).toEqual([
      frame(fact("app.exited", "p/a", { exit_code: 7 })),
    ]);
  });

  it("is also what no event could give back to who resumes", () => {
    const watcher = new HostWatcher({ mask: (_, bytes) => ({ bytes, redacted: 0 }), settings: {}, frameBytes: 20_000 });
    const harness = play({ watcher });
    const large = pod("large", { state: "RUNNING", more: { manifest: Buffer.alloc(8_000) } });
    const long = pod("l".repeat(300), { state: "RUNNING" });
    harness.pods(1_000);
    expect(harness.pods(2_000, large, long)).toEqual([unreadable, unreadable]);
    expect([harness.pods(3_000, large, long), harness.pods(4_000), harness.pods(5_000)]).toEqual([[], [], []]);
    expect(harness.pods(6_000, { ...large, manifest: Buffer.alloc(100) })).toEqual([frame(...startedFacts("large"))]);
  });

  it("is left out of the first description, and emitted after it", () => {
    const harness = play({ describeAfter: 4 });
    const q = Pod.encode(pod("q", { state: "PREPARED" })).finish();
    expect(harness.observation("pods", 1_000, all(Buffer.from(listOf([oddPod, q]))))).toEqual([described, unreadable]);
    expect(descriptions(harness).map(podIds)).toEqual([["q"]]);
    // Three more events, after the one that could not be read.
    expect(harness.pods(2_000, pod("p", { state: "RUNNING" }))).toEqual([frame(...startedFacts("p")), described]);
    expect(harness.observation("images", 1_000, all(broken))).toEqual([unreadable]);
    expect(harness.images(2_000, image("sha512-1"))).toEqual([described]);
  });

  it("is kept when it answers about one, and observations of another kind say nothing", () => {
    const harness = play();
    harness.pods(1_000, pod("p", { state: "RUNNING" }));
    const one = (bytes: Buffer) => ({ $case: "one", value: { id: "p", bytes, code: 0, message: "" } }) as const;
    expect(harness.observation("pods", 2_000, one(broken))).toEqual([unreadable]);
    expect(frames(harness).at(-1)?.original?.type).toBe("v1alpha.InspectPodResponse");
    expect(harness.observation("pods", 3_000, one(Buffer.alloc(0)))).toEqual([]);
    expect(harness.observation("pods", 4_000, one(listOfPods([pod("other", { state: "RUNNING" })])))).toEqual([]);
    expect(harness.observation("pods", 5_000, undefined)).toEqual([]);
    expect(
      harness.watcher.observe("logs", { result: { $case: "same", value: true } }, { seconds: 1n, nanos: 0 }),
    ).toEqual([]);
  });
});

describe("a host with 5,000 pods", () => {
  it("is compared by bytes: only what changed is masked and decoded", () => {
    const masked = vi.fn((_: string, bytes: Uint8Array) => ({ bytes, redacted: 0 }));
    const harness = play({ watcher: new HostWatcher({ mask: masked, settings: {} }) });
    const pods = Array.from({ length: 5_000 }, (_, index) => pod(`pod-${index}`, { state: "RUNNING" }));
    harness.pods(1_000, ...pods);
    expect(masked).toHaveBeenCalledTimes(5_000);
    masked.mockClear();
    const decode = vi.spyOn(Pod, "decode");
    const compare = vi.spyOn(Buffer, "compare");
    const changed = pods.with(17, pod("pod-17", { state: "RUNNING", codes: { a: 7 } })).toReversed();
    expect(harness.pods(2_000, ...changed)).toEqual([frame(fact("app.exited", "pod-17/a", { exit_code: 7 }))]);
    expect([masked.mock.calls.length, decode.mock.calls.length]).toEqual([1, 1]);
    // One for each entry, and one for what is accepted.
    expect(compare.mock.calls.length).toBeLessThanOrEqual(5_001);
    expect(harness.same("pods", 3_000)).toEqual([]);
    expect(masked).toHaveBeenCalledTimes(1);
    vi.restoreAllMocks();
  });

  it("keeps no answer alive for what it remembers of one pod", () => {
    const harness = play();
    const [before, after] = [7, 9].map((code) => listOfPods([pod("p", { state: "RUNNING", codes: { a: code } })]));
    const bytes = Buffer.from(before ?? []);
    harness.observation("pods", 1_000, { $case: "all", value: bytes });
    after?.copy(bytes);
    expect(harness.observation("pods", 2_000, { $case: "all", value: bytes })).toEqual([
      frame(fact("app.started", "p/a", { inferred: true }), fact("app.exited", "p/a", { exit_code: 9 })),
    ]);
  });
});

describe("images", () => {
  it("are described as they are", () => {
    const harness = play();
    harness.images(1, image("sha512-2", { size: 3 }), image("sha512-1"));
    const { images } = ListImagesResponse.decode(descriptions(harness)[0]?.original?.bytes ?? Buffer.alloc(0));
    expect(images.map((one) => Image.encode(one).finish().length)).toEqual(
      [image("sha512-1"), image("sha512-2", { size: 3 })].map((one) => Image.encode(one).finish().length),
    );
  });
});

describe("a host of many pods", () => {
  const ids = Array.from({ length: 1_500 }, (_, index) => `p${index}`);
  const observation = (value: Buffer, before: readonly Buffer[] = []) => {
    const { watcher } = play();
    for (const [at, bytes] of before.entries()) {
      outcomesOf(watcher.observe("pods", { result: { $case: "all", value: bytes } }, timestampOfMs(at)));
    }
    return [...watcher.observe("pods", { result: { $case: "all", value } }, timestampOfMs(1_000))].map(
      ({ what }) => what,
    );
  };
  const all = listOfPods(ids.map((id) => pod(id, { state: "RUNNING" })));
  /** The most entries that are read or described without a pause. */
  const max = (reported: readonly string[]) => ids.length / reported.filter((what) => what === "yield").length;

  it("is observed for the first time with pauses: at each pod that is read, and at each that is described", () => {
    const reported = observation(all);
    expect(max(reported)).toBeLessThanOrEqual(1 / 2);
    expect(reported.at(-1)).toBe("frame");
  });

  it("is observed again with pauses, where nothing has changed and where nothing is there any more", () => {
    expect(max(observation(all, [all]))).toBeLessThanOrEqual(1);
    expect(max(observation(listOfPods([]), [all]))).toBeLessThanOrEqual(1);
  });
});
