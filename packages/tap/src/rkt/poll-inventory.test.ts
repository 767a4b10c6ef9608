import { runningPod } from "@tapedeck/fakes/rkt/host";
import {
  type Image,
  InspectPodResponse,
  ListImagesResponse,
  ListPodsResponse,
  type Pod,
  PodState,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { delay } from "@tapedeck/shared/sync/delay";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { PolledConnection } from "../polling/connection.ts";
import type { PollResult } from "../polling/poll-result.ts";
import type { Reply } from "../unary-call.ts";
import { ImageDoubts, PodDoubts } from "./list-doubts.ts";
import { type InventoryMethods, imageMethods, podMethods } from "./methods.ts";
import { InventoryPoll, isSameList } from "./poll-inventory.ts";

const ok = (response: Buffer): Reply => ({ code: 0, message: "", response });
const failed: Reply = { code: 4, message: "too slow", response: Buffer.alloc(0) };
const unknown: Reply = { code: 2, message: "unable to resolve UUID", response: Buffer.alloc(0) };
const list = (...pods: Pod[]) => Buffer.from(ListPodsResponse.encode({ pods }).finish());
const [a, b] = [runningPod(1), runningPod(2)];

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Polls a server that answers so, for that long. Gives when each list was asked for, and what was seen. */
async function polled(
  answer: (path: string, timeoutMs: number, call: number) => Promise<Reply> | Reply,
  forMs: number,
  methods: InventoryMethods = podMethods,
) {
  const over = new AbortController();
  const started = performance.now();
  const requestedAt: number[] = [];
  const seen: PollResult["$case"][] = [];
  let calls = 0;
  const connection: Pick<PolledConnection, "signal" | "call"> = {
    signal: over.signal,
    call: async (path, _, timeoutMs) => {
      if (path === methods.list) requestedAt.push(performance.now() - started);
      return answer(path, timeoutMs, ++calls);
    },
  };
  const done = new InventoryPoll({
    methods,
    connection,
    doubts: new PodDoubts(),
    intervalMs: 1_000,
    load: 0.02,
    roundTripMs: 0,
    timeoutMs: 10_000,
    emit: ({ $case }) => void seen.push($case),
  }).run();
  await vi.advanceTimersByTimeAsync(forMs);
  over.abort();
  await vi.advanceTimersByTimeAsync(60_000);
  await done;
  const pauses = requestedAt.slice(1).map((at, index) => Math.round(at - (requestedAt[index] ?? 0)));
  return { pauses, seen };
}

describe("the pause between two polls", () => {
  it("is short while something changes", async () => {
    const { pauses } = await polled((_, __, call) => ok(call < 3 ? list(a) : list(b)), 8_000);
    // The first and the third observation were new.
    expect(pauses).toEqual([...Array(7).fill(200), ...Array(6).fill(1_000)]);
  });

  it("leaves the host the time that its answers cost, in the long run", async () => {
    const slow = async () => {
      await delay(500);
      return ok(list(a));
    };
    // The first answer says nothing yet; then each takes 1.6 % of the time to the next.
    expect((await polled(slow, 100_000)).pauses).toEqual([1_000, 31_250, 31_250, 31_250]);
  });

  it("leaves the host, with both lists together, the time that its load allows", async () => {
    const slow = async () => {
      await delay(500);
      return ok(list(a));
    };
    const longest = async (methods: InventoryMethods) => Math.max(...(await polled(slow, 400_000, methods)).pauses);
    const share = 500 / (await longest(podMethods)) + 500 / (await longest(imageMethods));
    expect(share).toBeCloseTo(0.02, 9);
  });

  it("leaves the host the time that questions about an observation cost, too", async () => {
    const pods = Array.from({ length: 50 }, (_, index) => runningPod(index));
    const answer = async (path: string, _: number, call: number) => {
      await delay(path === podMethods.inspect ? 2 : 4);
      if (path === podMethods.inspect) return unknown;
      return ok(call < 3 ? list(...pods) : list());
    };
    // 50 answers of 2 ms, and the list's 4 ms, are 1.6 % of 6.5 s.
    expect((await polled(answer, 10_000)).pauses.slice(0, 4)).toEqual([204, 250, 6_500, 250]);
  });

  it("is not long because one answer was", async () => {
    const once = async (_: string, __: number, call: number) => {
      if (call === 4) await delay(3_000);
      return ok(list(a));
    };
    expect((await polled(once, 12_000)).pauses.slice(0, 8)).toEqual([200, 200, 200, 6_000, 200, 1_000, 1_000, 1_000]);
  });

  it("grows while polls fail, and is short again after a good one", async () => {
    const { pauses, seen } = await polled((_, __, call) => (call < 9 ? failed : ok(list(a))), 200_000);
    const expected = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000];
    for (const [index, ms] of expected.entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(ms * 0.8 - 1);
      expect(pauses[index]).toBeLessThanOrEqual(ms * 1.2 + 1);
    }
    expect(pauses[8]).toBe(200);
    const lists = seen.filter((one) => one !== "late");
    expect(lists.slice(0, 10)).toEqual([...Array(8).fill("failed"), "all", "same"]);
  });
});

describe("questions about one observation", () => {
  it("take no longer together than one answer may take", async () => {
    const timeouts: number[] = [];
    const hangs = async (timeoutMs: number) => {
      timeouts.push(timeoutMs);
      await delay(Math.min(timeoutMs, 6_000));
      return timeouts.length < 2 ? unknown : failed;
    };
    const pods = Array.from({ length: 10 }, (_, index) => runningPod(index));
    const { pauses, seen } = await polled((path, timeoutMs, call) => {
      if (path === podMethods.inspect) return hangs(timeoutMs);
      return ok(call === 1 ? list(...pods) : list());
    }, 12_000);
    expect(timeouts).toEqual([10_000, 4_000]);
    // How long after the last whole list there is another one.
    expect(seen.slice(0, 5)).toEqual(["all", "all", "one", "one", "all"]);
    expect(pauses.slice(0, 2)).toEqual([200, 10_200]);
  });
});

describe("a list that does not come in twice its usual time", () => {
  it("is said to be late at once, and the running pods are inspected one by one until a list comes", async () => {
    const inspected: string[] = [];
    const exited = { ...b, state: PodState.POD_STATE_EXITED };
    const { seen } = await polled(async (path, timeoutMs, call) => {
      if (path !== podMethods.list) {
        inspected.push(path);
        // The first of them is the one that is starting.
        if (inspected.length === 1) await delay(timeoutMs);
        return inspected.length === 1 ? failed : ok(Buffer.from(InspectPodResponse.encode({ pod: exited }).finish()));
      }
      if (call === 6) await delay(6_500);
      return ok(list(a, b));
    }, 12_000);
    expect(seen.slice(0, 5)).toEqual(["all", "same", "same", "same", "same"]);
    // The pod that does not answer is left alone, and nothing is emitted for it.
    const singly = seen.filter((one) => one === "one").length;
    expect(singly).toBeGreaterThan(2);
    expect(seen.slice(5, 7 + singly)).toEqual(["late", ...Array(singly).fill("one"), "same"]);
    expect(inspected).toHaveLength(singly + 1);
    expect(seen.slice(6)).not.toContain("late");
  });

  it("is said once to be late while one list after the other fails, and again after one that came", async () => {
    const { seen } = await polled((_, __, call) => (call > 2 && call !== 8 ? failed : ok(list(a))), 60_000);
    const listed = seen.filter((one) => one !== "one" && one !== "failed");
    expect(listed).toEqual(["all", "same", "late", "all", "late"]);
  });
});

describe("a pod that lists leave out", () => {
  const unreadable: Reply = { code: 2, message: "unable to get pod", response: Buffer.alloc(0) };

  it("is asked for after each observation as long as it is there, whatever else changes", async () => {
    let inspections = 0;
    const { seen } = await polled((path, _, call) => {
      if (path === podMethods.inspect) return ++inspections < 4 ? unreadable : unknown;
      return ok(call === 1 ? list(a, b) : call < 6 ? list(a) : list());
    }, 5_000);
    const observations = ["all", "all", "one", "same", "one", "all", "one", "one", "same", "one", "same", "same"];
    expect(seen.slice(0, observations.length)).toEqual(observations);
  });

  it("is not asked for when a list has it again", async () => {
    const { seen } = await polled((path, _, call) => {
      if (path === podMethods.inspect) return unreadable;
      return ok(call === 2 ? list() : list(a));
    }, 1_500);
    expect(seen).toEqual(["all", "all", "one", "all", "same", "same", "same", "same", "same"].slice(0, seen.length));
    expect(seen.length).toBeGreaterThan(5);
  });
});

describe("two lists have the same entries", () => {
  const broken = Buffer.from([0x0a, 200, 1]);
  it.each([
    ["when they are equal", list(a, b), list(a, b), true],
    ["in another order too", list(a, b), list(b, a), true],
    ["unless one has another entry", list(a, b), list(a, { ...b, pid: 1_003 }), false],
    ["unless one has an entry more often", list(a, a, b), list(a, b, b), false],
    ["unless one is shorter", list(a), list(a, b), false],
    ["both none", list(), list(), true],
    ["both the same bytes that are no list", broken, broken, true],
    ["not when they are no lists", broken, Buffer.from([0x0a, 200, 2]), false],
  ])("%s", (_, one, other, same) => {
    expect(isSameList(podMethods, one, other)).toBe(same);
  });

  it("of images too, which come in any order", () => {
    const image = a.apps[0]?.image;
    const images = (...ids: string[]) => {
      const all = ids.flatMap((id): Image[] => (image === undefined ? [] : [{ ...image, id }]));
      return Buffer.from(ListImagesResponse.encode({ images: all }).finish());
    };
    expect(isSameList(imageMethods, images("1", "2"), images("2", "1"))).toBe(true);
    expect(isSameList(imageMethods, images("1", "2"), images("2", "3"))).toBe(false);
    const doubts = new ImageDoubts();
    expect(doubts.compare(images("1", "2"))).toEqual([]);
    expect(doubts.compare(Buffer.from([0x0a, 200]))).toEqual([]);
    expect(doubts.compare(images("2", "3"))).toEqual(["1"]);
  });
});
