import { Event, type GapDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { GetJobStreamResponse_Terminal_Event as TerminalEvent } from "@tapedeck/proto/vagrant/vagrant";
import { searched } from "@tapedeck/shared/testing/searches";
import { msOfTimestamp, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ObservationOutcome, outcomesOf } from "../../inventory/observing.ts";
import { eventsOf, indexOf, unmasked } from "../testing/jobs-play.ts";
import { type JobAction, type Shown, type SimulatedServer, simulateServer } from "../testing/simulated-server.ts";
import { JobsWatcher, type JobsWatcherOptions } from "./jobs-watcher.ts";

type Action =
  | { readonly what: "queue" | "list" | "reconnect" | "restart" }
  | { readonly what: "lose"; readonly job: number }
  | { readonly what: "step"; readonly job: number; readonly step: JobAction }
  | { readonly what: "pull"; readonly job: number; readonly max: number; readonly times: number };

const jobNumber = fc.nat(2);
const print = (max: number) => fc.record({ print: fc.integer({ min: 1, max: max }) });
const restart: fc.Arbitrary<Action> = fc.record({ what: fc.constant("restart" as const) });
const actionOf = (maxPrinted: number): fc.Arbitrary<Action> =>
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ what: fc.constantFrom("queue" as const, "list" as const) }) },
    { weight: 1, arbitrary: fc.record({ what: fc.constant("reconnect" as const) }) },
    { weight: 1, arbitrary: fc.record({ what: fc.constant("lose" as const), job: jobNumber }) },
    {
      weight: 6,
      arbitrary: fc.record({
        what: fc.constant("step" as const),
        job: jobNumber,
        step: fc.oneof(
          { weight: 3, arbitrary: fc.constantFrom<JobAction[]>("assign", "ack") },
          { weight: 1, arbitrary: fc.constantFrom<JobAction[]>("requeue", "cancel", "complete", "fail", "give up") },
          { weight: 4, arbitrary: print(maxPrinted) },
        ),
      }),
    },
    {
      weight: 7,
      arbitrary: fc.record({
        what: fc.constant("pull" as const),
        job: jobNumber,
        max: fc.integer({ min: 1, max: 5 }),
        times: fc.integer({ min: 1, max: 6 }),
      }),
    },
  );

/** Begins with a job that runs, as most histories of chance would never get there. */
function historyOf(server: SimulatedServer, actions: readonly Action[]): readonly Shown[] {
  server.queue();
  for (const step of ["assign", "ack"] as const) server.step(server.ids()[0], step);
  server.list();
  for (const action of actions) {
    const id = "job" in action ? server.ids()[action.job] : undefined;
    switch (action.what) {
      case "step":
        server.step(id, action.step);
        break;
      case "pull":
        for (let n = 0; n < action.times; n++) server.pull(id, action.max);
        break;
      case "lose":
        server.lose(id);
        break;
      default:
        server[action.what]();
    }
  }
  server.drain();
  return server.observations;
}

/**
 * A recorder is stopped after this observation. This much of what is not certain to be in the log is not in it (both to
 * a limit).
 */
type Kill = { readonly after: number; readonly looksLost: number; readonly eventsLost: number };

const kill: fc.Arbitrary<Kill> = fc.record({
  after: fc.nat(80),
  looksLost: fc.nat(6),
  eventsLost: fc.nat(20),
});

/** One event, or what is none. */
type Logged = { readonly observation: number; readonly seen: ObservationOutcome; readonly event?: Event };

/** Everything that gets into the log, in its order, by recorders that are stopped as `kills` says. */
function recorded(
  observations: readonly Shown[],
  kills: readonly Kill[],
  options: JobsWatcherOptions,
): readonly Logged[] {
  let log: Logged[] = [];
  let watcher = new JobsWatcher({ mask: unmasked, settings: {} }, options);
  let committed = -1;
  let until = 0;
  const left = [...kills].sort((a, b) => a.after - b.after);
  watcher.connected();
  for (let index = 0; index < observations.length; index++) {
    const { at, seen: what } = observations[index] ?? { at: 0, seen: undefined };
    if (what === "connected") watcher.connected();
    else if (at >= until) {
      until = 0;
      for (const seen of outcomesOf(watcher.observe("jobs", { result: what }, timestampOfMs(at)))) {
        const events = eventsOf([seen]);
        if (events.length === 0) log.push({ observation: index, seen });
        for (const event of events) log.push({ observation: index, seen, event });
      }
    }
    while (left[0] !== undefined && left[0].after <= index) {
      const { looksLost, eventsLost } = left.shift() as Kill;
      committed = Math.max(committed, index - looksLost);
      const certain = log.findLastIndex(({ observation }) => observation <= committed) + 1;
      log = log.slice(0, Math.max(certain, log.length - eventsLost));
      watcher = new JobsWatcher({ mask: unmasked, settings: {} }, options);
      for (const event of remembered(log)) {
        watcher.resume(event);
        until = Math.max(until, msOfTimestamp(event.observed_at ?? timestampOfMs(0)));
      }
      watcher.connected();
      index = committed;
    }
  }
  return log;
}

/** What a recorder reads back: the last complete description, and what came after it. */
function remembered(log: readonly Logged[]): readonly Event[] {
  const events = log.flatMap(({ event }) => event ?? []);
  let from = 0;
  for (const [index, { detail }] of events.entries()) {
    if (detail?.$case === "host" && detail.value.part === detail.value.parts - 1) from = index - detail.value.part;
  }
  const isPart = ({ kind }: Event) => kind === "inventory.described";
  const parts = events.slice(from).findIndex((event) => !isPart(event));
  const description =
    from === 0 && !events.slice(0, 1).some(isPart) ? [] : events.slice(from, parts < 0 ? undefined : from + parts);
  return [...description, ...events.slice(from + description.length).filter((event) => !isPart(event))];
}

type Output =
  | { readonly gap: NonNullable<GapDetail["output"]> }
  | { readonly gap?: never; readonly index: number; readonly place: number };

function outputOf(log: readonly Logged[], id: string): readonly Output[] {
  return log.flatMap(({ seen, event }): readonly Output[] => {
    if (seen.what === "gap") return seen.output?.job === id ? [{ gap: seen.output }] : [];
    if (seen.what !== "frame" || event?.subject !== id || event.kind !== "terminal.written") return [];
    const index = Number(indexOf(seen));
    const text = TerminalEvent.decode(event.original?.bytes ?? Buffer.alloc(0)).event;
    return [{ index, place: text?.$case === "line" ? Number(text.value.msg) : Number.NaN }];
  });
}

/** Facts, without their bytes. */
function reported(log: readonly Logged[]) {
  return log.flatMap(({ event }) => {
    if (event === undefined || event.kind === "inventory.described" || isWhole(event)) return [];
    return [Event.toJSON({ ...event, original: undefined, ordinal: 0n, part: 0 })];
  });
}

function isWhole({ kind }: Event): boolean {
  return kind === "mirror.received";
}

const kills = fc.array(kill, { maxLength: 3 });

describe("a watcher of jobs", () => {
  it.each([
    { windowSize: 4, maxPrinted: 11 },
    { windowSize: 7, maxPrinted: 9 },
  ])(
    "records each terminal event at its place, once, or a gap: windows of $windowSize",
    ({ windowSize, maxPrinted }) => {
      fc.assert(
        fc.property(
          fc.array(fc.oneof({ weight: 30, arbitrary: actionOf(maxPrinted) }, restart), { maxLength: 40 }),
          kills,
          fc.constantFrom(5, 1_000),
          (actions, stops, describeEvery) => {
            const server = simulateServer(windowSize, String);
            const observations = historyOf(server, actions);
            const log = recorded(observations, stops, { windowSize, describeEvery });
            for (const id of server.ids()) {
              let next = { index: 0, place: 0 };
              let gap = false;
              for (const one of outputOf(log, id)) {
                if (one.gap !== undefined) {
                  expect(Number(one.gap.index)).toBe(next.index);
                  gap = true;
                  continue;
                }
                // Windows that went by unseen can't be distinguished, so all in between may be known by fewer.
                expect((one.place - one.index) % windowSize).toBe(0);
                expect(one.index).toBeGreaterThanOrEqual(next.index);
                expect(one.place).toBeGreaterThanOrEqual(next.place);
                const isWindow = next.index % windowSize === 0;
                if (one.place !== next.place && !isWindow) expect(gap).toBe(true);
                if (one.index !== next.index) expect(gap).toBe(true);
                next = { index: one.index + 1, place: one.place + 1 };
                gap = false;
              }
              const isAll = next.place === server.printed(id).length;
              expect(isAll || gap || next.index % windowSize === 0).toBe(true);
            }
          },
        ),
        { numRuns: searched({ short: 300, long: 7_500 }) },
      );
    },
  );

  it("records all that was printed while no window went by unseen, and emits the same as one that was never stopped", () => {
    fc.assert(
      fc.property(
        fc.array(actionOf(9), { maxLength: 40 }),
        kills,
        fc.constantFrom(5, 1_000),
        (actions, stops, describeEvery) => {
          const server = simulateServer(5_248, String);
          const observations = historyOf(server, actions);
          const options = { describeEvery };
          const log = recorded(observations, stops, options);
          expect(reported(log)).toEqual(reported(recorded(observations, [], options)));
          for (const id of server.ids()) {
            const output = outputOf(log, id).filter((one) => one.gap === undefined);
            expect(output).toEqual(server.printed(id).map((_, index) => ({ index, place: index })));
            // A description does not say when a job was over, so one that was read again just then is not known to be.
            const whole = log.filter(({ event }) => event?.subject === id && isWhole(event));
            if (describeEvery > 5 || whole.length > 1) expect(whole).toHaveLength(1);
          }
        },
      ),
      { numRuns: searched({ short: 200, long: 5_000 }) },
    );
  });

  it("takes equal lines for what their places say", () => {
    fc.assert(
      fc.property(fc.array(actionOf(9), { maxLength: 40 }), kills, (actions, stops) => {
        const server = simulateServer(5_248, (index) => String(index % 2));
        const observations = historyOf(server, actions);
        const log = recorded(observations, stops, {});
        for (const id of server.ids()) {
          const output = outputOf(log, id).filter((one) => one.gap === undefined);
          expect(output).toEqual(server.printed(id).map((_, index) => ({ index, place: index % 2 })));
        }
      }),
      { numRuns: searched({ short: 60, long: 1_500 }) },
    );
  });

  it("emits each step of a job once, and its end", () => {
    fc.assert(
      fc.property(fc.array(actionOf(3), { maxLength: 40 }), kills, (actions, stops) => {
        const server = simulateServer(5_248, String);
        const log = recorded(historyOf(server, actions), stops, {});
        for (const id of server.ids()) {
          const events = log.flatMap(({ event }) =>
            event?.subject === id && event.kind !== "terminal.written" ? [event] : [],
          );
          const attempts = events.map(({ detail }) => (detail?.$case === "job" ? detail.value.attempt : undefined));
          const kinds = events.map(({ kind }) => kind);
          const milestones = kinds.map((kind, index) => `${kind} ${attempts[index] ?? ""}`);
          expect(milestones).toEqual([...new Set(milestones)]);
          expect([kinds[0], attempts[0]]).toEqual(["job.queued", 0]);
          expect(kinds.at(-1)).toBe("mirror.received");
          expect(kinds.filter((kind) => /^job\.(succeeded|failed|canceled)/.test(kind))).toHaveLength(1);
          expect(kinds.includes("command.started")).toBe(kinds.includes("command.finished"));
        }
      }),
      { numRuns: searched({ short: 100, long: 2_500 }) },
    );
  });
});
