import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/vagrant/recording";
import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { runSteps } from "@tapedeck/fakes/vagrant/timed";
import { sourceName } from "@tapedeck/shared/source";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import type { Seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { metric } from "../../harness/ingest-harness.ts";
import { isPushed, tapBeside } from "../../harness/vagrant-harness.ts";
import { openTestLog, spillFolder } from "../processes.ts";
import { sourceEvents } from "../recorded-events.ts";
import { type ServiceProcess, startServiceProcess } from "../service-process.ts";
import { type Fate, type Kill, muted, type SampleName } from "./server-kill.ts";
import type { Figures } from "./server-kill-checks.ts";
import { type Course, startCourse } from "./server-kill-course.ts";

const samples = join(recordings.vagrant, "samples");

function sample(name: SampleName): RecordedUpstream {
  return loadRecording(join(samples, `${name}.jsonl`));
}

/** Places in a sample, by the number of completed steps: all, and those right after the end of a job. */
export function killPoints(name: SampleName): { readonly all: readonly number[]; readonly ends: readonly number[] } {
  const steps = runSteps(sample(name), "failing");
  const ends = steps.flatMap(({ kind }, index) => (kind === "complete" ? [index + 1] : []));
  return { all: [0, ...steps.map((_, index) => index + 1)], ends };
}

/** Returns such a kill at this place, with everything else random. */
export function killAt(random: Seeded, sample: SampleName, fate: Fate, place: number): Kill {
  const received = Math.max(0, place - random.below(8));
  const some = random.below(2) === 0 ? [] : muted.filter(() => random.below(2) === 0);
  return { sample, fate, place, received, mute: received + random.below(place - received + 1), muted: some };
}

export type KillsOptions = {
  /**
   * Kills ingest as well, while jobs write continuously: before some of the servers, after others. `beside`: the taps
   * keep running, and push again what it may have recorded.
   */
  readonly recorder?: "killed" | "killed beside its taps";
};

/**
 * Runs each kill on a server of its own, all of them recorded by one ingest; then plays the sample to its end, or
 * again.
 */
export async function serverKillsLoseNothing(
  kills: readonly Kill[],
  random: Seeded,
  { recorder }: KillsOptions = {},
): Promise<Figures> {
  await using harness = await startHarness(kills.length, recorder === "killed beside its taps");
  const courses = kills.map((kill, index) => {
    const host = harness.hosts[index];
    if (host === undefined) throw new Error("too few hosts");
    return startCourse(host, sample(kill.sample), kill, random);
  });
  if (recorder === undefined) {
    for (const course of courses) {
      await course.begin();
      await course.strike();
    }
  } else {
    for (const course of courses) await course.begin();
    await killWhileWriting(harness.ingest, courses);
    for (const [index, course] of courses.entries()) if (index % 2 === 0) await course.strike();
    await harness.ingest.start();
    for (const [index, course] of courses.entries()) if (index % 2 === 1) await course.strike();
  }
  await Promise.all(courses.map((course) => course.end()));
  await harness.recorded();
  const figures: Figures[] = [];
  for (const course of courses) figures.push(await course.expectRecord(recorder === undefined ? 0 : 1));
  const sum = (of: (one: Figures) => number) => figures.reduce((total, one) => total + of(one), 0);
  return {
    sessions: sum(({ sessions }) => sessions),
    written: sum(({ written }) => written),
    recorded: sum(({ recorded }) => recorded),
    gaps: sum(({ gaps }) => gaps),
  };
}

/** The number of lines in one stream message while more are pending. */
const maxEvents = 64;
const linesAtOnce = 500;
/** Fewer than the server keeps, including those of the sample. */
const maxLines = 4_500;

/** Kills ingest when only some lines of a stream message are recorded: the message will come again. */
async function killWhileWriting({ pid, kill }: ServiceProcess, courses: readonly Course[]): Promise<void> {
  const writing = courses.filter((course) => course.isReceived());
  let written = 0;
  const isInTheMiddle = async () => {
    process.kill(pid, "SIGSTOP");
    const recorded = await Promise.all(writing.map((course) => course.recordedLines()));
    const isPartly = (lines: number) => lines < written && (lines % linesAtOnce) % maxEvents > 0;
    if (recorded.some(isPartly) || written === maxLines) return true;
    if (recorded.every((lines) => lines === written)) {
      for (const course of writing) course.write(linesAtOnce);
      written += linesAtOnce;
    }
    process.kill(pid, "SIGCONT");
    return false;
  };
  if (writing.length > 0) await until(isInTheMiddle, { message: "a message to be recorded in part" });
  await kill();
}

/** Starts fake servers, and an ingest in a separate process that records them. */
async function startHarness(count: number, tapsBeside: boolean) {
  await using cleanup = new AsyncDisposableStack();
  const nats = cleanup.use(await startTestNats({ syncAlways: true }));
  const log = cleanup.use(await openTestLog(nats.url));
  const hosts = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const fake = cleanup.use(await startFakeVagrant());
      const name = `d${index}`;
      const source = sourceName({ workspace: "default", developer: name, project: "shop", upstream: "vagrant" });
      return { name, fake, events: sourceEvents(log.reader, source) };
    }),
  );
  const sources = hosts.map(({ name, fake }) => ({
    upstream: "vagrant",
    developer: name,
    project: "shop",
    address: fake.address,
    redact: "off",
  }));
  const ingest = cleanup.use(
    await startServiceProcess("ingest", {
      TAPEDECK_NATS_URL: nats.url,
      TAPEDECK_SOURCES: JSON.stringify(tapsBeside ? [] : sources),
      TAPEDECK_INGEST_SPILL_DIR: await spillFolder(),
    }),
  );
  const { grpc = "" } = ingest.addresses;
  const taps = tapsBeside ? await Promise.all(hosts.map((host) => tapBeside(host, grpc))) : [];
  for (const tap of taps) cleanup.use(tap);
  for (const { fake, events } of hosts) {
    const isDescribed = async () => (await events()).some(({ event: { kind } }) => kind === "inventory.described");
    await until(isDescribed, { message: "what is there to be described" });
    await until(() => fake.calls("_ListJobs").made > 0, { message: "a first look at the jobs" });
  }
  const owned = cleanup.move();
  return {
    ingest,
    hosts,
    async recorded() {
      const isEmpty = async () =>
        tapsBeside ? taps.every(isPushed) : (await metric(ingest, "tapedeck_ingest_spill_items")) === 0;
      await until(isEmpty, { message: "all that was seen to be in the log" });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
