import { line } from "@tapedeck/fakes/vagrant/client";
import type { Playback } from "@tapedeck/fakes/vagrant/playback";
import type { RecordedUpstream } from "@tapedeck/fakes/vagrant/recording";
import type { FakeVagrant } from "@tapedeck/fakes/vagrant/server";
import type { RecordedStep } from "@tapedeck/fakes/vagrant/steps";
import { newNames, runSteps } from "@tapedeck/fakes/vagrant/timed";
import { Job_State, GetJobStreamResponse_Terminal_Event as TerminalEvent } from "@tapedeck/proto/vagrant/vagrant";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import { sessionsOf } from "../recorded-events.ts";
import type { Kill } from "./server-kill.ts";
import { expectRecord, type Figures } from "./server-kill-checks.ts";
import { turn } from "./strike.ts";

export type RecordedHost = { readonly fake: FakeVagrant; readonly events: () => Promise<readonly RecordedEvent[]> };

/** The course of one server up to its kill and after it. */
export type Course = {
  /** Plays up to the position of the kill. */
  readonly begin: () => Promise<void>;
  readonly strike: () => Promise<void>;
  /**
   * Plays the sample to its end, or all of it in the next process; resolves when all that is then known is recorded.
   */
  readonly end: () => Promise<void>;
  readonly expectRecord: (recorderKills: number) => Promise<Figures>;
  /** A job runs, and none of its data is held back. */
  readonly isReceived: () => boolean;
  /** Writes so many more lines in the running job. */
  readonly write: (lines: number) => void;
  /** The number of these lines that are recorded. */
  readonly recordedLines: () => Promise<number>;
};

type Doing = { readonly process: number; readonly written: Buffer[]; isOver: boolean };

/** Steps of a sample before its first job. */
const preparation = 5;

export function startCourse(
  { fake, events }: RecordedHost,
  recording: RecordedUpstream,
  kill: Kill,
  random: Seeded,
): Course {
  const jobs = new Map<string, Doing>();
  const releases: (() => void)[] = [];
  const steps = runSteps(recording, "failing");
  /** Drawn now, because the courses reach these points in any order. */
  const chance = {
    /** Some states are observed one by one, others pass before they can be observed. */
    isTurn: steps.map(() => random.below(3) > 0),
    meanwhile: random.below(5),
    isLeftEndedFirst: random.below(2) === 0,
    seenAgain: random.below(1_000) / 1_000,
    isLate: random.below(2) === 0,
  };
  /** The server's process. */
  let current = 0;
  let { names, playback } = newPlayback();

  function newPlayback(): { readonly names: ReadonlyMap<string, string>; readonly playback: Playback } {
    const ids = newNames(fake, recording);
    return { names: ids, playback: fake.playAsNow(steps, ids) };
  }

  function stateOf(job: string): Job_State {
    return fake.database.jobs.get(job)?.state ?? Job_State.UNKNOWN;
  }

  function doing(job: string): Doing {
    const found = jobs.get(job);
    if (found === undefined) throw new Error(`job ${job} was not queued`);
    return found;
  }

  function note(step: RecordedStep): void {
    const now = (id: string) => names.get(id) ?? id;
    if (step.kind === "write") doing(now(step.job)).written.push(...step.events.map(encoded));
    else if (step.kind === "complete") doing(now(step.job)).isOver = true;
    else if (step.kind === "call" && step.rpc === "QueueJob") {
      jobs.set(now(step.about ?? ""), { process: current, written: [], isOver: false });
    }
  }

  async function playTo(place: number): Promise<void> {
    while (playback.done() < place) {
      const isTurn = chance.isTurn[playback.done()];
      const step = playback.next();
      if (step === undefined) return;
      note(step);
      if (isTurn) await turn();
    }
  }

  /** Resolves when all that the current process knows is recorded. */
  async function untilReceived(): Promise<void> {
    const message = `what is known to be recorded: ${JSON.stringify(kill)}, then step ${playback.done()}`;
    await until(async () => expectReceived(await events()), { message });
  }

  function expectReceived(all: readonly RecordedEvent[]): true {
    const session = sessionsOf(all).at(-1);
    for (const [id, { process: own, written, isOver }] of jobs) {
      if (own < current && isOver) continue;
      const recordedKinds = all.flatMap(({ event }) =>
        event.session === session && event.subject === id ? [event.kind] : [],
      );
      const pieces = recordedKinds.filter((kind) => kind === "terminal.written").length;
      if (own === current && pieces < written.length) throw new Error(`${pieces} of ${written.length} pieces of ${id}`);
      const missing = lastKinds[stateOf(id)]?.find((kind) => !recordedKinds.includes(kind));
      if (missing !== undefined) throw new Error(`no ${missing} of ${id}`);
    }
    return true;
  }

  async function restart(): Promise<void> {
    await fake.restart();
    current = 1;
  }

  /** Ends the stale jobs of the killed process, whose runners are gone or never come. */
  function endLeft(): void {
    for (const [id, { process: own, isOver }] of jobs) {
      if (own === current || isOver) continue;
      if (stateOf(id) === Job_State.RUNNING) fake.jobs.loseHeartbeat(id);
      if (stateOf(id) === Job_State.WAITING) fake.jobs.dropAssignment(id);
      fake.jobs.cancel(id);
    }
  }

  function running(): string | undefined {
    return [...jobs.keys()].find((id) => stateOf(id) === Job_State.RUNNING);
  }

  return {
    async begin() {
      await playTo(kill.received);
      await untilReceived();
      await playTo(kill.mute);
      releases.push(...kill.muted.map((part) => (part === "list" ? fake.hold("_ListJobs") : fake.holdStreams(part))));
      await playTo(kill.place);
    },
    async strike() {
      const some = () => playTo(playback.done() + chance.meanwhile);
      switch (kill.fate) {
        case "killed":
          await restart();
          break;
        case "crashed":
          expect(() => fake.call("FindTarget", Buffer.alloc(0))).toThrow();
          await fake.crash;
          await restart();
          break;
        case "left":
          await fake.leave();
          await restart();
          break;
        case "cut off":
          await fake.cut();
          await some();
          await restart();
          break;
        case "cut":
          await fake.cut();
          await some();
          await fake.mend();
          break;
        case "late":
          await some();
      }
      for (const release of releases.splice(0)) release();
    },
    async end() {
      if (current > 0) {
        if (chance.isLeftEndedFirst) endLeft();
        ({ names, playback } = newPlayback());
        await playTo(preparation);
        endLeft();
      }
      const left = steps.length - playback.done();
      await playTo(playback.done() + Math.floor(left * chance.seenAgain));
      await untilReceived();
      // A stream never sends what it holds back until its job has ended, so another stream must send it.
      const release = chance.isLate ? fake.holdStreams("output") : () => {};
      await playTo(steps.length);
      release();
      await untilReceived();
    },
    async expectRecord(recorderKills) {
      const deeds = { jobs, rows: fake.database.jobs, last: current, recorderKills };
      try {
        return expectRecord(await events(), deeds);
      } catch (cause) {
        throw new Error(`after ${JSON.stringify(kill)}`, { cause });
      }
    },
    isReceived: () => running() !== undefined && releases.length === 0,
    write(lines) {
      const id = running() ?? "";
      const { written } = doing(id);
      const some = Array.from({ length: lines }, () => line(`line ${written.length} of many`));
      fake.jobs.write(id, some);
      written.push(...some.map(encoded));
    },
    async recordedLines() {
      const isLine = ({ event: { detail } }: RecordedEvent) =>
        detail?.$case === "text" && /^line \d+ of many/.test(detail.value.text);
      return (await events()).filter(isLine).length;
    },
  };
}

/** The kinds of events of a job that stays in this state. */
const lastKinds: Readonly<Record<number, readonly string[]>> = {
  [Job_State.QUEUED]: ["job.queued"],
  [Job_State.WAITING]: ["job.assigned"],
  [Job_State.RUNNING]: ["job.started"],
  [Job_State.SUCCESS]: ["job.succeeded", "mirror.received"],
  [Job_State.ERROR]: ["job.canceled", "mirror.received"],
};

function encoded(event: TerminalEvent): Buffer {
  return Buffer.from(TerminalEvent.encode(event).finish());
}
