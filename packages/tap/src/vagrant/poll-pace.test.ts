import { upJob } from "@tapedeck/fakes/vagrant/shop";
import { type Job, Job_State, ListJobsResponse, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { delay } from "@tapedeck/shared/sync/delay";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { PollResult } from "../polling/poll-result.ts";
import { WakeableTimer } from "../polling/wakeable-timer.ts";
import type { Reply } from "../unary-call.ts";
import { JobObserver } from "./job-observer.ts";
import { JobPoll } from "./poll-jobs.ts";
import { ResourcePoll } from "./poll-resources.ts";
import { TappedJobs } from "./tapped-jobs.ts";

const { QUEUED, RUNNING, SUCCESS } = Job_State;
const service = VagrantService;
const ok = (response = Buffer.alloc(0)): Reply => ({ code: 0, message: "", response });
const job = (id: string, state: Job_State): Job => ({ ...upJob({ project: "P", runner: "R" }), id, state });
const list = (...jobs: Job[]): Reply => ok(Buffer.from(ListJobsResponse.encode({ jobs }).finish()));

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type Answer = (path: string, at: number) => Reply | Promise<Reply>;

/** When each call was made. */
function asking(answer: Answer) {
  const over = new AbortController();
  const started = performance.now();
  const callTimes = new Map<string, number[]>();
  const call = async (path: string) => {
    const at = performance.now() - started;
    callTimes.set(path, [...(callTimes.get(path) ?? []), at]);
    return answer(path, at);
  };
  return {
    connection: { signal: over.signal, call },
    times: (path: string) => callTimes.get(path) ?? [],
    pauses: (path: string) => {
      const times = callTimes.get(path) ?? [];
      return times.slice(1).map((at, index) => Math.round(at - (times[index] ?? 0)));
    },
    leave: () => over.abort(),
  };
}

async function polled(answer: Answer, forMs: number, during: (wake: () => void) => Promise<void> | void = () => {}) {
  const server = asking(answer);
  const timer = new WakeableTimer();
  server.connection.signal.addEventListener("abort", timer.wake);
  const done = new JobPoll({
    connection: server.connection,
    known: new TappedJobs(() => {}),
    timer,
    queued: new Set<string>(),
    timeoutMs: 10_000,
    emit: () => {},
    onChange: () => {},
  }).run();
  await during(timer.wake);
  await vi.advanceTimersByTimeAsync(forMs);
  server.leave();
  await vi.advanceTimersByTimeAsync(60_000);
  await done;
  return server.pauses(service.listJobs.path);
}

/** How often each pause came, one after the other. */
function runs(pauses: readonly number[]): [number, number][] {
  const found: [number, number][] = [];
  for (const ms of pauses) {
    const last = found.at(-1);
    if (last?.[0] === ms) last[1]++;
    else found.push([ms, 1]);
  }
  return found;
}

describe("jobs are listed", () => {
  it("quickly on a new connection, and longer while there are none", async () => {
    const none = runs(await polled(() => list(), 64_500));
    expect(none).toEqual([
      [50, 1_200],
      [200, 22],
    ]);
    const over = runs(await polled(() => list(job("A", SUCCESS)), 14_500));
    expect(over).toEqual([
      [50, 200],
      [200, 22],
    ]);
  });

  it("as soon as 50 times what a list takes is over, every half second while one is not finished, else every two", async () => {
    const listing = (state: Job_State, ms: number) => async () => {
      await delay(ms);
      return list(job("A", state));
    };
    const later = async (state: Job_State, ms: number) => (await polled(listing(state, ms), 20_000)).at(-1);
    expect([await later(SUCCESS, 2), await later(RUNNING, 2)]).toEqual([202, 202]);
    expect([await later(SUCCESS, 8), await later(RUNNING, 8)]).toEqual([408, 408]);
    expect([await later(SUCCESS, 20), await later(RUNNING, 20)]).toEqual([1_020, 520]);
    expect([await later(SUCCESS, 100), await later(RUNNING, 100)]).toEqual([2_100, 600]);
  });

  it("quickly after one has ended", async () => {
    const pauses = await polled((_, at) => list(job("A", at < 12_000 ? RUNNING : SUCCESS)), 22_000);
    expect(runs(pauses)).toEqual([
      [50, 200],
      [200, 10],
      [50, 100],
      [200, 25],
    ]);
  });

  it("at once when the timer is woken", async () => {
    const pauses = await polled(
      () => list(job("A", SUCCESS)),
      3_000,
      async (wake) => {
        await vi.advanceTimersByTimeAsync(10_070);
        wake();
      },
    );
    expect(runs(pauses).slice(0, 3)).toEqual([
      [50, 200],
      [70, 1],
      [200, 15],
    ]);
  });

  it("less often where it takes long", async () => {
    const slow = (ms: number) => async () => {
      await delay(ms);
      return list(job("A", QUEUED));
    };
    // From its question to the next: 4 times as long as it took, and twice as long when that is more than half a second.
    expect(runs(await polled(slow(25), 9_000)).slice(0, 3)).toEqual([
      [75, 1],
      [125, expect.any(Number)],
    ]);
    expect(runs(await polled(slow(1_000), 15_000)).slice(1)).toEqual([[3_000, expect.any(Number)]]);
  });

  it("less and less often while it fails, and waking the timer does not help where it hangs", async () => {
    const failing = (code: number) => () => ({ code, message: "", response: Buffer.alloc(0) });
    const pauses = await polled(failing(13), 130_000);
    for (const [index, ms] of [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(ms * 0.8 - 1);
      expect(pauses[index]).toBeLessThanOrEqual(ms * 1.2 + 1);
    }
    const waking = (wake: () => void) => {
      for (let n = 1; n <= 1_000; n++) setTimeout(wake, n * 10);
    };
    expect((await polled(failing(4), 10_000, waking)).length).toBeLessThan(8);
    expect((await polled(failing(13), 10_000, waking)).length).toBeGreaterThan(500);
  });
});

describe("jobs are observed for readers", () => {
  /** The pauses between lists while a reader asks for the job every 10 ms, after the quick time of a new connection. */
  async function observed(id: string, tookMs: number): Promise<number[]> {
    const server = asking(async () => {
      await delay(tookMs);
      return list(job("A", SUCCESS));
    });
    const timer = new WakeableTimer();
    server.connection.signal.addEventListener("abort", timer.wake);
    const known = new TappedJobs(() => {});
    const queued = new Set<string>();
    const jobs = new JobPoll({
      connection: server.connection,
      known,
      timer,
      queued,
      timeoutMs: 10_000,
      emit: () => {},
      onChange: () => {},
    });
    const done = jobs.run();
    const follower = { done: async () => {} };
    const observer = new JobObserver({ jobs, known, queued, follower, signal: server.connection.signal });
    await vi.advanceTimersByTimeAsync(20_000);
    const before = server.times(service.listJobs.path).length;
    for (let at = 0; at < 20_000; at += 10) {
      void observer.observe(id);
      await vi.advanceTimersByTimeAsync(10);
    }
    server.leave();
    await vi.advanceTimersByTimeAsync(60_000);
    await done;
    return server.pauses(service.listJobs.path).slice(before + 2);
  }

  it("so that lists take at most about a tenth of the server's time", async () => {
    for (const [tookMs, apartMs] of [
      [1, 50],
      [20, 200],
      [100, 1_000],
    ] as const) {
      const pauses = await observed("A", tookMs);
      expect(Math.min(...pauses)).toBeGreaterThanOrEqual(apartMs);
      expect(Math.max(...pauses)).toBeLessThanOrEqual(apartMs + 20);
    }
  });

  it("and without a list for an id that was never seen", async () => {
    expect([...new Set(await observed("made-up", 20))]).toEqual([1_020]);
  });
});

describe("resources are polled", () => {
  const paths = {
    target: service.listTargets.path,
    project: service.listProjects.path,
    basis: service.listBasis.path,
    box: service.listBoxes.path,
  };

  function polling(answer: Answer = () => ok()) {
    const server = asking(answer);
    const results: PollResult[] = [];
    const known = new TappedJobs((change) => polls.jobChanged(change));
    const polls = new ResourcePoll({
      connection: server.connection,
      known,
      emit: (result: PollResult) => void results.push(result),
      timeoutMs: 10_000,
      jobs: { firstPoll: Promise.resolve(), failure: undefined },
    });
    const done = polls.run();
    const updateJob = (id: string, state: Job_State) => known.updateAll(list(job(id, state)).response);
    const leave = async () => {
      server.leave();
      await vi.advanceTimersByTimeAsync(60_000);
      await done;
    };
    const partsOf = (kind: string) =>
      results.flatMap((result) =>
        result.$case === "resources" ? result.value.kinds.filter((of) => of.kind === kind) : [],
      );
    return { ...server, polls, updateJob, leave, sames: (kind: string) => partsOf(kind).map(({ same }) => same) };
  }

  it("rarely while no command runs", async () => {
    const it = polling();
    await vi.advanceTimersByTimeAsync(61_000);
    await it.leave();
    expect(runs(it.pauses(paths.target))).toEqual([[15_000, 4]]);
    for (const kind of ["project", "basis", "box"] as const)
      expect(runs(it.pauses(paths[kind]))).toEqual([[30_000, 2]]);
  });

  it("and emitted whole again after ten seconds, the same or not", async () => {
    const it = polling();
    await vi.advanceTimersByTimeAsync(31_000);
    expect(it.sames("target")).toEqual([false, false, false]);
    it.updateJob("A", RUNNING);
    await vi.advanceTimersByTimeAsync(11_500);
    await it.leave();
    const [first, ...again] = it.sames("target").slice(3);
    expect(first).toBe(true);
    expect(again.filter((same) => !same)).toHaveLength(1);
  });

  it("at each change of a job, every second while a command runs, and after it", async () => {
    const it = polling();
    await vi.advanceTimersByTimeAsync(100);
    it.updateJob("A", QUEUED);
    await vi.advanceTimersByTimeAsync(100);
    it.updateJob("A", RUNNING);
    await vi.advanceTimersByTimeAsync(3_500);
    it.updateJob("A", SUCCESS);
    await vi.advanceTimersByTimeAsync(30_500);
    await it.leave();
    const after = [3_700, 3_750, 4_700];
    expect(it.times(paths.target).map(Math.round)).toEqual([0, 100, 200, 1_200, 2_200, 3_200, ...after, 19_700]);
    for (const kind of ["project", "basis", "box"] as const)
      expect(it.times(paths[kind]).map(Math.round)).toEqual([0, 100, ...after]);
    expect(it.times(service.getRunner.path).map(Math.round)).toEqual([100, ...after]);
  });

  it("at once after a control call that may have changed them", async () => {
    const it = polling();
    await vi.advanceTimersByTimeAsync(100);
    void it.polls.pollNow("target");
    await vi.advanceTimersByTimeAsync(100);
    await it.leave();
    for (const path of Object.values(paths)) expect(it.times(path).map(Math.round)).toEqual([0, 100]);
  });

  it("less and less often while that fails", async () => {
    const it = polling((path) => (path === paths.box ? { code: 13, message: "", response: Buffer.alloc(0) } : ok()));
    await vi.advanceTimersByTimeAsync(100_000);
    await it.leave();
    for (const [index, ms] of [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000].entries()) {
      expect(it.pauses(paths.box)[index]).toBeGreaterThanOrEqual(ms * 0.8 - 1);
      expect(it.pauses(paths.box)[index]).toBeLessThanOrEqual(ms * 1.2 + 1);
    }
  });
});
