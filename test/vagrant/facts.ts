import type { RecordedUpstream } from "@tapedeck/fakes/vagrant/recording";
import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import {
  type Event,
  Outcome,
  outcomeToJSON,
  TimeSource,
  type VagrantResourceDetail,
} from "@tapedeck/proto/tapedeck/v1/event";
import { GetJobStreamResponse, type Job } from "@tapedeck/proto/vagrant/vagrant";
import { expect } from "vitest";
import { outputOf } from "./output.ts";

const times = ["queue_time", "assign_time", "ack_time", "cancel_time", "complete_time"] as const;

/** Compares the recorded facts of a sample with what was done in it, when all of it was observed as it happened. */
export function expectFacts(events: readonly Event[], recording: RecordedUpstream): void {
  const jobs = reportedOf(events, "jobs");
  expect(jobs.map((event) => lineOf(event, recording))).toEqual([
    ...jobLines(recording, "init"),
    ...jobLines(recording, "up"),
  ]);
  expect(jobs.flatMap(({ kind, part }) => (part === 0 ? [] : [[kind, part]]))).toEqual([
    ["command.started", 1],
    ["command.finished", 1],
  ]);
  expectDetails(jobs, jobsIn(recording).up.id);
  expectResources(reportedOf(events, "resources"));
  const targets = statesOfTargets(events);
  expect(targets.map(([first]) => first?.state)).toEqual(["UNKNOWN", "UNKNOWN"]);
  // Changes observed after the command's end belong to no running job.
  const during = targets.flat().flatMap(({ job }) => (job === "" ? [] : [job]));
  expect(new Set(during)).toEqual(new Set([jobsIn(recording).up.id]));
  const own = reportedOf(events, "tapedeck").map(({ kind }) => kind);
  expect(own.filter((kind) => kind === "session.gap" || kind === "upstream.lost")).toEqual([]);
  expect(own.filter((kind) => kind === "session.started")).toHaveLength(1);
}

/**
 * The same if polling paused for a while, or the recorder was killed. Later observations report what happened
 * meanwhile: all that happened to a job, and all its output, each in order. But a job's end may come before its output.
 */
export function expectLastingFacts(events: readonly Event[], recording: RecordedUpstream): void {
  const jobs = reportedOf(events, "jobs");
  const isOutput = (event: string) => event.startsWith("terminal.");
  for (const [name, { id }] of Object.entries(jobsIn(recording))) {
    const actual = jobs.filter(({ subject }) => subject === id).map((event) => lineOf(event, recording));
    const expected = jobLines(recording, name);
    expect(
      actual.filter((line) => !isOutput(line)),
      name,
    ).toEqual(expected.filter((line) => !isOutput(line)));
    expect(actual.filter(isOutput), name).toEqual(expected.filter(isOutput));
  }
  expect(new Set(jobs.map(({ subject }) => subject)).size).toBe(2);
  expectDetails(jobs, jobsIn(recording).up.id);
  expectResources(reportedOf(events, "resources"));
  const own = reportedOf(events, "tapedeck");
  expect(own.filter(({ kind }) => kind === "session.started")).toHaveLength(1);
  expect(own.filter(({ kind }) => ["session.ended", "session.lost", "upstream.unreadable"].includes(kind))).toEqual([]);
  // An end that could not be read again at once is in doubt. But nothing was missing.
  const gaps = own.flatMap(({ detail }) => (detail?.$case === "gap" ? (detail.value.output ?? []) : []));
  expect(gaps.filter(({ next_index }) => next_index !== undefined)).toEqual([]);
}

/** Whether it is recorded that a job's output may be cut. */
export function isInDoubt(events: readonly Event[], job: string): boolean {
  return events.some(({ detail }) => detail?.$case === "gap" && detail.value.output?.job === job);
}

function reportedOf(events: readonly Event[], channel: string): Event[] {
  return events.filter((event) => event.channel === channel && event.kind !== "inventory.described");
}

function jobLines(recording: RecordedUpstream, name: string): string[] {
  const isUp = name === "up";
  return [
    `job.queued ${name} at queue_time`,
    `job.assigned ${name} at assign_time`,
    `job.started ${name} at ack_time`,
    ...(isUp ? ["command.started up at ack_time"] : []),
    ...outputLines(recording, name),
    `job.succeeded ${name} at complete_time: ${isUp ? "FAILED" : "SUCCEEDED"}`,
    ...(isUp ? ["command.finished up at complete_time: FAILED"] : []),
    `mirror.received ${name} complete`,
  ];
}

function expectDetails(jobs: readonly Event[], up: string): void {
  const finished = jobs.find(({ kind }) => kind === "command.finished");
  expect(finished?.error).toMatchObject({
    code: "2",
    message: "The SSH command responded with a non-zero exit status. (shortened)",
  });
  expect(finished?.detail).toMatchObject({ value: { command: "up", succeeded: false, scope_name: "shop" } });
  const started = jobs.find(({ kind, subject }) => kind === "job.started" && subject === up);
  const detail = { operation: "command", command: "up", scope: "project", scope_name: "shop", stale: false };
  expect(started?.detail).toMatchObject({ value: detail });
}

/** Changes between two polls are not observed, so only the beginning and the end are certain. */
function expectResources(resources: readonly Event[]): void {
  const bySubject = Map.groupBy(resources, ({ subject }) => subject);
  const begun = [...bySubject.values()].flatMap(([first]) => (first === undefined ? [] : [first]));
  expect(begun.map((event) => `${event.kind} ${resourceOf(event)?.name}`).toSorted()).toEqual([
    "basis.added default",
    "box.added hashicorp/bionic64",
    "project.added shop",
    expect.stringMatching(/^runner\.added /),
    "target.added web1",
    "target.added web2",
  ]);
  for (const [first, ...rest] of bySubject.values()) {
    const noun = first?.kind.split(".")[0];
    expect(rest.filter(({ kind }) => kind !== `${noun}.changed`)).toEqual([]);
  }
  for (const states of statesOfTargets(resources)) {
    expect(states.at(-1)?.state, "as it runs").toBe("CREATED");
    for (const [index, { last_state }] of states.entries()) {
      if (last_state !== "") expect(last_state, "what it was before").toBe(states[index - 1]?.state);
    }
  }
  for (const event of resources) {
    expect(event.inferred, event.summary).toBe(false);
    expect(event.time_source, event.summary).toBe(TimeSource.TIME_SOURCE_INTERVAL);
    expect(event.not_before, event.summary).toBeDefined();
    expect(event.original?.bytes.length, event.summary).toBeGreaterThan(0);
  }
}

/** The recorded details of each target, in order. */
function statesOfTargets(events: readonly Event[]): readonly (readonly VagrantResourceDetail[])[] {
  const targets = events.filter(({ kind }) => kind.startsWith("target."));
  return [...Map.groupBy(targets, ({ subject }) => subject).values()].map((about) =>
    about.flatMap((event) => resourceOf(event) ?? []),
  );
}

function resourceOf({ detail }: Event): VagrantResourceDetail | undefined {
  return detail?.$case === "thing" ? detail.value : undefined;
}

/** Formats one line: kind, job, which of the job's times it has, outcome; for output its position and text. */
function lineOf(event: Event, recording: RecordedUpstream): string {
  const [name = "?", job] = Object.entries(jobsIn(recording)).find(([, { id }]) => id === event.subject) ?? [];
  const { kind, detail, outcome } = event;
  if (detail?.$case === "text") {
    const { text, level, noise, output } = detail.value;
    return `${kind} ${name} ${output?.index}: ${noise ? "(noise)" : `${level} ${text}`}`;
  }
  // All of its output has been read.
  if (detail?.$case === "mirror") return `${kind} ${name} ${detail.value.what}`;
  const at = times.filter((time) => job?.[time] !== undefined && sameTime(job[time], event.occurred_at));
  const how = outcome === Outcome.OUTCOME_NONE ? "" : `: ${outcomeToJSON(outcome).replace("OUTCOME_", "")}`;
  return `${kind} ${name} at ${at.join(" or ") || "another time"}${how}`;
}

function outputLines(recording: RecordedUpstream, name: string): string[] {
  const messages = recording.rows.flatMap((row) =>
    row.kind === "stream-message" && row.stream === `${name}-live` ? [row.message] : [],
  );
  return outputOf(messages).map(({ event }, index) => {
    const text = event?.$case === "line" ? `${event.value.style} ${event.value.msg}\n` : "(noise)";
    return `terminal.written ${name} ${index}: ${text}`;
  });
}

/** The two jobs of a sample, in their final state. */
export function jobsIn({ rows }: RecordedUpstream): { readonly init: Job; readonly up: Job } {
  const jobs = new Map<string, Job>();
  for (const row of rows) {
    if (row.kind !== "stream-message" || row.rpc !== "GetJobStream") continue;
    const { event } = GetJobStreamResponse.decode(row.message);
    if (event?.$case === "state" && event.value.job !== undefined) jobs.set(event.value.job.id, event.value.job);
  }
  const [init, up] = [...jobs.values()];
  if (init === undefined || up === undefined) throw new Error("a sample without two jobs");
  return { init, up };
}

function sameTime(one: Timestamp | undefined, other: Timestamp | undefined): boolean {
  return one?.seconds === other?.seconds && one?.nanos === other?.nanos;
}
