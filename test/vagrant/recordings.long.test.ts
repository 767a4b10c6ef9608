import { join } from "node:path";
import {
  loadRecording,
  type RecordedRow,
  type RecordedUnary,
  type RecordedUpstream,
} from "@tapedeck/fakes/vagrant/recording";
import type { RecordedStep } from "@tapedeck/fakes/vagrant/steps";
import { GetJobStreamRequest, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { parsePosition } from "@tapedeck/shared/log/position";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Following, VagrantAnswer } from "./client.ts";
import { exceptions, reordered } from "./exceptions.ts";
import { expectFacts, jobsIn } from "./facts.ts";
import { canonical, type StreamItem, streamItemsIn } from "./output.ts";
import { startVagrantStack, type VagrantStack } from "./stack.ts";
import { commandTimes, expectTables, failures, labelledCommands, labelledFailures } from "./tables.ts";

const fixtures = join(import.meta.dirname, "../../packages/fakes/recordings", "vagrant", "samples");

type Sample = {
  /** The number of answers compared with recorded ones. */
  readonly compared: Readonly<Record<string, number>>;
  /** From this row on all requests are about the end. */
  readonly end: number;
};

const both = { GetVersionInfo: 1, FindBasis: 1, _ListJobs: 3, ListTargets: 3, GetTarget: 6, GetJob: 1 };
const atTheEnd = { ListProjects: 1, GetProject: 1, ListBoxes: 1, GetBox: 1, GetRunner: 1 };
const samples: Readonly<Record<string, Sample>> = {
  up: { compared: { ...both, ...atTheEnd }, end: 86 },
  "up-shipped-cli": { compared: { ...both, ...atTheEnd }, end: 57 },
};

/** An answer at a position of the log. */
type RecordedAnswer = { readonly row: RecordedUnary; readonly answer: VagrantAnswer };

describe.each(Object.entries(samples))("%s, recorded and served again", (name, sample) => {
  const recording = loadRecording(join(fixtures, `${name}.jsonl`));
  const places: RecordedAnswer[] = [];
  let on: VagrantStack;
  beforeAll(async () => {
    on = await startVagrantStack();
  });
  afterAll(() => on[Symbol.asyncDispose]());

  it("answers as the server did, and streams what it streamed", async () => {
    const { fake, client } = on;
    const playback = fake.playSample(recording);
    const counts: Record<string, number> = {};
    const excepted: number[] = [];
    const streams = new Map<string, Following>();
    for (const row of recording.rows) {
      playback.to(row.n - 1);
      if (row.kind === "stream-open" && row.rpc === "GetJobStream") {
        const job = GetJobStreamRequest.decode(row.request).job_id;
        // By then the tap must have found the job, and follows it itself.
        await until(async () => (await client.ask("GetJob", row.request)).code === 0, { message: `job ${job}` });
        await until(() => fake.calls("GetJobStream").made > 0, { message: `the tap to follow ${job}` });
        await on.stack.drained();
        streams.set(row.stream, client.job(job));
      }
      playback.to(together(recording, row));
      if (row.kind === "stream-message" && row.rpc === "GetJobStream") {
        const expected = recordedItems(recording, row.stream, row.n);
        await until(() => expectSoFar(streamItemsIn(streams.get(row.stream)?.messages ?? []), expected), {
          message: `row ${row.n}`,
        });
      }
      if (row.kind === "unary" && isRead(row)) {
        const exception = exceptions[row.n];
        const answer = await until(
          async () => {
            const given = await client.ask(row.rpc, row.request);
            if (exception === undefined) expectAnswer(given, row);
            else expect(given, exception.why).toMatchObject(exception.answer);
            return given;
          },
          { message: `row ${row.n}` },
        );
        if (exception !== undefined) excepted.push(row.n);
        else counts[row.rpc] = (counts[row.rpc] ?? 0) + 1;
        if (answer.code === 0) places.push({ row, answer });
        // Compares the server's bytes, whatever their order.
        if (answer.code === 0 && reordered.has(row.rpc)) expect(answer.bytes).toEqual(fake.call(row.rpc, row.request));
      }
    }
    expect(playback.done()).toBe(playback.steps.length);
    expect(counts).toEqual(sample.compared);
    expect(excepted).toEqual(Object.keys(exceptions).map(Number));
    expect([...streams.keys()]).toEqual(["init-live", "up-live", "up-late", "up-reopen"]);
    for (const [stream, { end, messages }] of streams) {
      expect(await end, stream).toMatchObject({ code: 0 });
      expect(streamItemsIn(messages), stream).toEqual(recordedItems(recording, stream));
    }
  });

  it("records what happened", async () => {
    await on.stack.drained();
    expectFacts(
      (await on.stack.events()).map(({ event }) => event),
      recording,
    );
  });

  it("has the jobs, commands and targets in SQL", async () => {
    await expectTables(on.stack.database, recording);
    expect(await commandTimes(on.stack.database)).toEqual(labelledCommands[name]);
    expect(await failures(on.stack.database)).toEqual(labelledFailures[name]);
  });

  it("answers about a past position as it did then", async () => {
    for (const { row, answer } of places) {
      const then = await on.client.ask(row.rpc, row.request, { "tapedeck-at": answer.position });
      expect(then, `row ${row.n}`).toEqual(answer);
    }
    const offsets = places.map(({ answer }) => parsePosition(answer.position)?.offset ?? 0);
    expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
    const different = (rpc: string) =>
      new Set(places.flatMap(({ row, answer }) => (row.rpc === rpc ? [answer.bytes.toString("base64")] : []))).size;
    expect(different("_ListJobs")).toBe(3);
    // Registered, and running; web1 was already when web2 was not.
    expect(different("GetTarget")).toBe(4);
  });

  it("answers the same after a restart of every service, without the server", async () => {
    await on.fake.goAway();
    await on.restart();
    for (const { row, answer } of places.filter(({ row }) => row.n >= sample.end)) {
      expectAnswer(await on.client.ask(row.rpc, row.request), row);
      const then = await on.client.ask(row.rpc, row.request, { "tapedeck-at": answer.position });
      expect(then, `row ${row.n}`).toEqual(answer);
    }
    for (const stream of ["init-live", "up-live"]) {
      const again = on.client.job(jobOf(recording, stream));
      expect(await again.end).toMatchObject({ code: 0 });
      expect(streamItemsIn(again.messages)).toEqual(replayOf(recordedItems(recording, stream)));
    }
    expect(replayOf(recordedItems(recording, "up-live"))).toEqual(recordedItems(recording, "up-reopen"));
  });
});

/** Whether a call only reads: a recorder's polls, and the command line's requests before it changes anything. */
function isRead({ actor, rpc }: RecordedUnary): boolean {
  return actor === "recorder" || rpc === "GetVersionInfo" || rpc.startsWith("Find");
}

function expectAnswer(answer: VagrantAnswer, { n, rpc, response, error }: RecordedUnary): void {
  const { code, message, bytes } = answer;
  const text = (given: Buffer) => (reordered.has(rpc) ? canonical(rpc, given) : given.toString("base64"));
  const expected = error ? { code: error.code, message: error.details } : { code: 0, bytes: text(response) };
  expect(code === 0 ? { code, bytes: text(bytes) } : { code, message }, `row ${n}, ${rpc}`).toEqual(expected);
}

/** The last row of a message that was sent to two listeners, whose order differs each time. */
function together({ rows }: RecordedUpstream, row: RecordedRow): number {
  const next = rows.find(({ n }) => n === row.n + 1);
  const isMessage = row.kind === "stream-message" && next?.kind === "stream-message";
  return isMessage && next.stream !== row.stream && next.message.equals(row.message) ? next.n : row.n;
}

/** Later items came at the same moment, if there are any. */
function expectSoFar(items: readonly StreamItem[], expected: readonly StreamItem[]): true {
  expect(items.slice(0, expected.length)).toEqual(expected);
  return true;
}

/** Returns a stream's items up to a row. */
function recordedItems({ rows }: RecordedUpstream, stream: string, last = Number.POSITIVE_INFINITY): StreamItem[] {
  return streamItemsIn(
    rows.flatMap((row) =>
      row.kind === "stream-message" && row.stream === stream && row.n <= last ? [row.message] : [],
    ),
  );
}

function jobOf({ rows }: RecordedUpstream, stream: string): string {
  const row = rows.find((one) => one.kind === "stream-open" && one.stream === stream);
  return row?.kind === "stream-open" ? GetJobStreamRequest.decode(row.request).job_id : "";
}

/** Returns the stream of a finished job, given its stream while it ran. */
function replayOf(items: readonly StreamItem[]): StreamItem[] {
  const last = items.findLast((one) => one.is === "state");
  return [
    { is: "open" },
    ...(last === undefined ? [] : [{ ...last, step: `UNKNOWN>${last.step.split(">")[1]}` }]),
    ...items.flatMap((one) => (one.is === "output" ? [{ ...one, isBuffered: true }] : [])),
    ...items.filter((one) => one.is === "complete"),
  ];
}

it("setting up that fails is a failure without a command", async () => {
  await using on = await startVagrantStack();
  const recording = loadRecording(join(fixtures, "up.jsonl"));
  const { init } = jobsIn(recording);
  const playback = on.fake.playSample(recording);
  const isEnd = (step: RecordedStep) => step.kind === "complete" && step.job === init.id;
  playback.to((playback.steps.find(isEnd)?.n ?? Number.NaN) - 1);
  await on.waitForState(init.id, Job_State.RUNNING);
  on.fake.jobs.fail(init.id, { code: 2, message: "no Vagrantfile", details: [] });
  expect(await on.waitForEvent("job.failed", init.id)).toMatchObject({ error: { message: "no Vagrantfile" } });
  await on.stack.drained();
  expect(await failures(on.stack.database)).toEqual([{ phase: "job", subject: "init", code: "2" }]);
});
