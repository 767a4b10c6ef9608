import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import type { Playback } from "@tapedeck/fakes/vagrant/playback";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/vagrant/recording";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { delay } from "@tapedeck/shared/sync/delay";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import {
  at,
  type VagrantHarness,
  type VagrantHarnessOptions,
  type VagrantHost,
  vagrantHarness,
} from "../../harness/vagrant-harness.ts";
import { expectLastingFacts, isInDoubt, jobsIn } from "../../vagrant/facts.ts";
import { streamItemsIn } from "../../vagrant/output.ts";
import { holes } from "../recorded-events.ts";
import { type Fault, strike, turn } from "./strike.ts";

const samples = join(recordings.vagrant, "samples");

type Playing = {
  readonly host: VagrantHost;
  readonly recording: RecordedUpstream;
  readonly playback: Playback;
  /** The numbers of completed steps at which the faults strike. */
  readonly places: readonly number[];
};

export type KillsOptions = VagrantHarnessOptions & { readonly faults: readonly Fault[] };

/** Plays the samples with these faults in between, and compares what is recorded and served with what was done. */
export async function vagrantKillsLeaveNoTrace({ faults, ...options }: KillsOptions): Promise<void> {
  const random = seeded("vagrant kills");
  const names = ["up", "up-shipped-cli"];
  await using harness = await vagrantHarness(names, options);
  const playings = harness.hosts.map((host): Playing => {
    const recording = loadRecording(join(samples, `${host.name}.jsonl`));
    const playback = host.fake.playSample(recording);
    const some = faults.map(() => random.below(playback.steps.length));
    return { host, recording, playback, places: some.toSorted((a, b) => a - b) };
  });
  await using readers = new AsyncDisposableStack();
  const readings = playings.map((playing) => readers.use(readAgainAndAgain(harness, playing)));
  for (const [round, fault] of faults.entries()) {
    for (const { playback, places } of playings) {
      while (playback.done() < (places[round] ?? 0)) {
        playback.next();
        // Some states are observed one by one, others pass before they can be observed.
        if (random.below(3) > 0) await turn();
      }
    }
    // Half of the faults strike when everything so far is recorded.
    if (random.below(2) === 0) await harness.recorded();
    await strike(fault, harness, () => {
      for (const { playback } of playings) for (let count = 1 + random.below(4); count > 0; count--) playback.next();
    });
  }
  for (const { playback } of playings) playback.all();
  await Promise.all(playings.map((playing) => recordedToTheEnd(harness, playing)));
  for (const [index, { host, recording }] of playings.entries()) {
    const events = await host.events();
    expect(holes(events), host.name).toEqual([]);
    expectLastingFacts(
      events.map(({ event }) => event),
      recording,
    );
    await readings[index]?.expectWhole();
  }
  console.log(
    `vagrant kills: ${faults.join(" ")}; ${sequenceOf((await harness.log.bounds()).lastOffset)} events in the log`,
  );
}

/** Resolves when both jobs are over, and all of their output and the final state of the targets are recorded. */
async function recordedToTheEnd(harness: VagrantHarness, { host, recording }: Playing): Promise<void> {
  for (const { id } of Object.values(jobsIn(recording))) {
    const over = async () => {
      const events = await host.events();
      return events.some(({ event }) => event.kind === "job.succeeded" && event.subject === id);
    };
    await until(over, { message: `job ${id} of ${host.name} to be over` });
  }
  const expected = recording.rows.flatMap((row) =>
    row.kind === "unary" && row.rpc === "GetTarget" && row.response !== undefined ? [row] : [],
  );
  for (const { request, response, n } of expected.slice(-2)) {
    await until(
      async () => {
        const { bytes } = await harness.client.ask("GetTarget", request, at(host));
        expect(bytes.toString("base64")).toBe(response.toString("base64"));
        return true;
      },
      { message: `row ${n} of ${host.name}` },
    );
  }
  await harness.recorded();
}

/** Retries as a client would: at once, but not in a tight loop while there is no answer. */
const againMs = 25;

type Reading = AsyncDisposable & {
  /** Waits until the stream has been read to its end, and checks that every opening got the same, as far as it came. */
  readonly expectWhole: () => Promise<void>;
};

/** A client of the command's job that reconnects whenever its stream was cut, from the job's start. */
function readAgainAndAgain({ client }: VagrantHarness, { host, recording }: Playing): Reading {
  const { up } = jobsIn(recording);
  const over = new AbortController();
  const openings: (readonly Buffer[])[] = [];
  const isWhole = Promise.withResolvers<void>();
  const run = async () => {
    while (!over.signal.aborted) {
      const following = client.job(up.id, at(host));
      const leave = () => following.cancel();
      over.signal.addEventListener("abort", leave);
      const { code } = await following.end;
      over.signal.removeEventListener("abort", leave);
      if (following.messages.length > 0) openings.push(following.messages);
      if (code === 0) return isWhole.resolve();
      await delay(againMs, over.signal);
    }
  };
  const running = run();
  const outputOf = (messages: readonly Buffer[]) =>
    streamItemsIn(messages).flatMap((one) => (one.is === "output" ? [one.event] : []));
  return {
    async expectWhole() {
      await isWhole.promise;
      const expected = outputOf(
        recording.rows.flatMap((row) =>
          row.kind === "stream-message" && row.stream === "up-live" ? [row.message] : [],
        ),
      );
      for (const messages of openings) {
        const given = outputOf(messages);
        expect(given, host.name).toEqual(expected.slice(0, given.length));
      }
      // A reader does not wait for output that may never come.
      const isCut = isInDoubt(
        (await host.events()).map(({ event }) => event),
        up.id,
      );
      if (!isCut) expect(outputOf(openings.at(-1) ?? []), host.name).toEqual(expected);
      const late = client.job(up.id, at(host));
      expect(await late.end).toMatchObject({ code: 0 });
      expect(outputOf(late.messages), host.name).toEqual(expected);
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      await running;
    },
  };
}
