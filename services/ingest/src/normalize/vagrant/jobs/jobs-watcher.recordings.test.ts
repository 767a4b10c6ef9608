import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/vagrant/recording";
import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { describe, expect, it } from "vitest";
import { type ObservationOutcome, outcomesOf } from "../../inventory/observing.ts";
import { fact, frame } from "../../inventory/testing/outcome-fields.ts";
import { mask } from "../mask.ts";
import { comparedJobs, factsOf, written } from "../testing/jobs-play.ts";
import { streamMessageIn } from "./job-wire.ts";
import { JobsWatcher } from "./jobs-watcher.ts";

const folder = join(import.meta.dirname, "../../../../../../packages/fakes/recordings/vagrant/samples");
const start = Date.parse("2026-11-20T15:41:41Z");

/**
 * The outcomes, by job, of what the recording's own recorder was answered, but for one of the two streams that it had
 * open at once: a tap has one.
 */
function watched(name: string, without = "up-late") {
  const recording = loadRecording(join(folder, `${name}.jsonl`));
  const watcher = new JobsWatcher({ mask, settings: {} });
  const seen: ObservationOutcome[] = [];
  const jobs = new Map<string, string>();
  const given = new Map<string, number>();
  const observation = (at: number, what: Observation["result"]) =>
    seen.push(...outcomesOf(watcher.observe("jobs", { result: what }, timestampOfMs(start + at))));
  for (const row of recording.rows) {
    if (row.actor !== "recorder" || ("stream" in row && row.stream === without)) continue;
    if (row.kind === "unary" && row.rpc === "_ListJobs" && row.response)
      observation(row.atMs, { $case: "all", value: row.response });
    if (row.kind === "stream-open" && row.rpc === "GetJobStream")
      jobs.set(row.stream, row.request.subarray(2).toString());
    const job = "stream" in row ? jobs.get(row.stream) : undefined;
    if (job === undefined || !("stream" in row)) continue;
    const { stream } = row;
    if (row.kind === "stream-message") {
      const before = given.get(stream) ?? 0;
      observation(row.atMs, { $case: "streamed", value: { job, bytes: row.message, stream, before: BigInt(before) } });
      const message = streamMessageIn(row.message);
      given.set(stream, before + (message.what === "terminal" ? message.events.length : 0));
    } else if (row.kind === "stream-end") {
      const { code, details: message } = row.end;
      observation(row.atMs, { $case: "stream_ended", value: { job, stream, code, message } });
    }
  }
  const subjects = [...new Set(factsOf(seen).map(({ subject }) => subject))];
  return {
    facts: factsOf(seen),
    outcomes: subjects.map((subject) =>
      comparedJobs(seen.filter((one) => one.what === "frame" && one.facts[0].subject === subject)),
    ),
    gaps: seen.filter(({ what }) => what === "gap"),
  };
}

const initOutcomes = (job: string) => [
  frame(fact("job.queued", job)),
  frame(fact("job.assigned", job, { attempt: 1 })),
  frame(fact("job.started", job)),
  ...written({ job, index: 0n, next_index: 3n }),
  frame(fact("job.succeeded", job, { outcome: Outcome.OUTCOME_SUCCEEDED })),
];
const upStarted = (job: string) => [
  frame(fact("job.queued", job)),
  frame(fact("job.assigned", job, { attempt: 1 })),
  frame(fact("job.started", job), fact("command.started", job, { command: "up" })),
];
const upFailed = (job: string) => [
  frame(
    fact("job.succeeded", job, { outcome: Outcome.OUTCOME_FAILED }),
    fact("command.finished", job, { outcome: Outcome.OUTCOME_FAILED, command: "up" }),
  ),
  frame(fact("mirror.received", job, { what: "complete" })),
];

describe("a recorded run of vagrant up", () => {
  it("emits its two jobs and all their output", () => {
    const { outcomes, facts, gaps } = watched("up");
    const [init, up] = ["01M7WSXR06H66N9X9VS1NTGZ87", "01M7WSXR6NFM73VJ0F879K4ZNP"] as const;
    expect(outcomes).toEqual([
      initOutcomes(init),
      [...upStarted(up), ...written({ job: up, index: 0n, next_index: 20n }), ...upFailed(up)],
    ]);
    expect(gaps).toEqual([]);
    expect(facts.flatMap(({ kind, summary }) => (kind === "terminal.written" ? [] : [summary]))).toMatchInlineSnapshot(`
      [
        "init (job 01M7WSXR06H66N9X9VS1NTGZ87) was queued",
        "init (job 01M7WSXR06H66N9X9VS1NTGZ87) was given to a runner",
        "init (job 01M7WSXR06H66N9X9VS1NTGZ87) started",
        "init (job 01M7WSXR06H66N9X9VS1NTGZ87) succeeded",
        "up (job 01M7WSXR6NFM73VJ0F879K4ZNP) was queued",
        "up (job 01M7WSXR6NFM73VJ0F879K4ZNP) was given to a runner",
        "up (job 01M7WSXR6NFM73VJ0F879K4ZNP) started",
        "up started",
        "up (job 01M7WSXR6NFM73VJ0F879K4ZNP) is over: up failed",
        "up failed: The SSH command responded with a non-zero exit status. (shortened)",
        "the output of job 01M7WSXR6NFM73VJ0F879K4ZNP is complete",
      ]
    `);
    const texts = facts.flatMap(({ detail }) =>
      detail?.$case === "text" && !detail.value.noise ? [detail.value.text] : [],
    );
    expect(texts.join("")).toMatchInlineSnapshot(`
      "Bringing machine 'web1' up with 'virtualbox' provider...
      Bringing machine 'web2' up with 'virtualbox' provider...
      ==> web1: Importing base box 'hashicorp/bionic64'...
      ==> web1: Booting VM...
      ==> web1: Waiting for machine to boot. This may take a few minutes...
          web1: SSH address: 127.0.0.1:2222
      ==> web1: Machine booted and ready!
      ==> web1: Running provisioner: shell...
          web1: Running: inline script
          web1: provisioned ok
      ==> web2: Importing base box 'hashicorp/bionic64'...
      ==> web2: Booting VM...
      ==> web2: Waiting for machine to boot. This may take a few minutes...
          web2: SSH address: 127.0.0.1:2223
      ==> web2: Machine booted and ready!
      ==> web2: Running provisioner: shell...
          web2: Running: inline script
          web2: E: Unable to locate package nope
      "
    `);
  });

  it("emits the same to one that came later", () => {
    const { outcomes, gaps } = watched("up", "up-live");
    const factsInOrder = (all: typeof outcomes) =>
      all.map((one) => one.flatMap((each): readonly object[] => (each.what === "frame" ? each.facts : [each])));
    expect(factsInOrder(outcomes)).toEqual(factsInOrder(watched("up").outcomes));
    // Nobody can know that the command did not print thousands of lines before.
    expect(gaps).toMatchObject([
      {
        output: { job: "01M7WSXR6NFM73VJ0F879K4ZNP", index: 0n },
        reason:
          "the output of job 01M7WSXR6NFM73VJ0F879K4ZNP was first read when it had run for 0.3 s, " +
          "and the server drops terminal events 5248 at a time: its beginning may be missing",
      },
    ]);
  });

  it("emits the same of the command line as shipped, which gives no output", () => {
    const { outcomes } = watched("up-shipped-cli");
    const [init, up] = ["01M7WSXSMWMGMK6Y44AVJ6V79P", "01M7WSXSVBVY4Y17RJF1VQ3GZG"] as const;
    expect(outcomes).toEqual([initOutcomes(init), [...upStarted(up), ...upFailed(up)]]);
  });
});
