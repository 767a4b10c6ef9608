import {
  type DeepPartial,
  GetLogStreamRequest,
  type Job,
  Job_State,
  LogBatch,
  Project,
  Target,
} from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CallContext } from "../../../call-context.ts";
import { ended, type JobHarness, jobFacts, jobHarness } from "../testing/job-harness.ts";
import type { Fields } from "../testing/vagrant-harness.ts";
import { logStream } from "./log-stream.ts";

let on: JobHarness;
beforeEach(async () => {
  on = await jobHarness();
  on.session("01A");
});
afterEach(() => on[Symbol.asyncDispose]());

type Scope = NonNullable<GetLogStreamRequest["scope"]>["$case"];

const scopeOf = ($case: Scope, resource_id: string) => ({ $case, value: { resource_id } }) as const;
const about = (kind: Scope, id: string): DeepPartial<Job> => ({ scope: scopeOf(kind, id) });

/** A job about something, with what it prints. */
function prints(job: string, scope: DeepPartial<Job>, texts: readonly string[], session = "01A"): readonly Fields[] {
  const facts = jobFacts(job, session);
  return [facts.is("job.queued", Job_State.RUNNING, scope), ...texts.map((text) => facts.writes(text))];
}

async function open(kind: Scope | undefined, id = "", limit_backlog = 0, context: Partial<CallContext> = {}) {
  const request = GetLogStreamRequest.fromPartial({ ...(kind && { scope: scopeOf(kind, id) }), limit_backlog });
  const { head, messages } = await logStream(on.deps, request, on.context(context));
  const got: LogBatch[] = [];
  const read = async () => {
    for await (const message of messages) got.push(LogBatch.decode(message));
  };
  const end = read();
  end.catch(() => {});
  return { head, got, end, lines: () => got.flatMap(({ lines }) => lines.map(({ line }) => line)) };
}

/** The lines so far: what was printed after the call is the last of them. */
async function linesOf(stream: Awaited<ReturnType<typeof open>>, job: string, scope: DeepPartial<Job>) {
  await on.add(...prints(job, scope, ["live"]));
  await until(() => stream.lines().at(-1) === "live", { message: "a live line" });
  return stream.lines().slice(0, -1);
}

describe("a log has what was printed", () => {
  beforeEach(async () => {
    const target = Target.fromPartial({ resource_id: "T1", project: { resource_id: "P1" } });
    const project = (id: string, basis: string) =>
      Project.fromPartial({ resource_id: id, basis: { resource_id: basis } });
    on.hold("targets", { T1: Target.encode(target).finish() });
    on.hold("projects", {
      P1: Project.encode(project("P1", "B1")).finish(),
      P2: Project.encode(project("P2", "B1")).finish(),
      P3: Project.encode(project("P3", "B2")).finish(),
    });
    await on.add(
      ...prints("J1", about("project", "P1"), ["one"]),
      ...prints("J2", about("project", "P2"), ["two"]),
      ...prints("J3", about("target", "T1"), ["three"]),
      ...prints("J4", about("basis", "B1"), ["four"]),
      ...prints("J5", about("project", "P3"), ["five"]),
      ...prints("J7", {}, ["seven"]),
      jobFacts("J1", "01A").writes("eight", 1),
    );
  });

  it.each<[string, Scope, string, readonly string[]]>([
    ["by jobs of a project and of its targets", "project", "P1", ["one", "three", "eight"]],
    ["by jobs of another project", "project", "P2", ["two"]],
    ["by jobs of a target", "target", "T1", ["three"]],
    [
      "by jobs of a basis and of its projects and their targets",
      "basis",
      "B1",
      ["one", "two", "three", "four", "eight"],
    ],
    ["by nobody, of what nobody knows", "project", "P9", []],
  ])("%s", async (_, kind, id, lines) => {
    expect(await linesOf(await open(kind, id), "J9", about(kind, id))).toEqual(lines);
  });
});

it("has what was printed of a target that is not there any more", async () => {
  await on.add(...prints("J1", about("target", "gone"), ["one"]), ...prints("J2", {}, ["two"]));
  expect(await linesOf(await open("target", "gone"), "J9", about("target", "gone"))).toEqual(["one"]);
});

describe("a scope is refused", () => {
  it.each<[string, Scope | undefined, string]>([
    ["that is none", undefined, ""],
    ["without its id", "project", ""],
  ])("%s", async (_, kind, id) => {
    await expect(open(kind, id)).rejects.toMatchObject({ code: 9, message: "invalid scope supplied" });
  });

  it("at a moment", async () => {
    await expect(open("project", "P1", 0, { at: "now" })).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe("the backlog", () => {
  const all = Array.from({ length: 120 }, (_, index) => String(index));

  it.each([
    ["has 50 lines by default", 0, all.slice(-50)],
    ["has as many as are asked for", 7, all.slice(-7)],
    ["begins inside of an event", 3, all.slice(-3)],
    ["has all there are when more are asked for", 5_000, all],
    ["has all below 0", -1, all],
  ])("%s", async (_, limit, lines) => {
    const pairs = Array.from({ length: 60 }, (_, index) => `${2 * index}\n${2 * index + 1}`);
    await on.add(...prints("J1", about("project", "P1"), pairs));
    const stream = await open("project", "P1", limit);
    expect(await linesOf(stream, "J2", about("project", "P1"))).toEqual(lines);
    expect(Math.max(...stream.got.map(({ lines }) => lines.length))).toBeLessThanOrEqual(64);
  });

  it("reaches back over what others have printed, and finds out what a job was about that was queued long before", async () => {
    await on.add(...prints("J1", about("project", "P1"), ["one", "two", "three"]));
    for (let n = 0; n < 5; n++) {
      await on.add(
        ...prints(
          `K${n}`,
          about("project", "P2"),
          Array.from({ length: 990 }, () => "other"),
        ),
      );
    }
    await on.add(jobFacts("J1", "01A").writes("four", 3));
    expect(await linesOf(await open("project", "P1", 1), "J2", about("project", "P1"))).toEqual(["four"]);
    expect(await linesOf(await open("project", "P1", 3), "J3", about("project", "P1"))).toEqual([
      "three",
      "four",
      "live",
    ]);
  });

  it("is of all sessions, of one, or of what was recorded after a position", async () => {
    const project = about("project", "P1");
    const first = await on.add(...prints("J1", project, ["one"]));
    await on.add(...prints("J2", project, ["two"]));
    on.session("01A", { ended: true, end_position: on.position(await on.add(ended("01A"))) });
    on.session("01B");
    await on.add(...prints("J3", project, ["three"], "01B"));
    const past = await open("project", "P1", 0, { session: "01A" });
    await past.end;
    expect(past.lines()).toEqual(["one", "two"]);
    const streams = [
      { context: {}, lines: ["one", "two", "three"], position: on.position(0) },
      { context: { session: "01B" }, lines: ["three"], position: on.endPosition(first + 3) },
      { context: { after: on.position(first) }, lines: ["two", "three"], position: on.position(first) },
    ];
    for (const { context, lines, position } of streams) {
      const stream = await open("project", "P1", -1, context);
      await until(() => stream.lines().length >= lines.length, { message: "the backlog" });
      expect(stream.lines()).toEqual(lines);
      expect(stream.head.position).toBe(position);
    }
  });
});

it("is sent once, though the server was recorded in two sessions", async () => {
  const project = about("project", "P1");
  await on.add(...prints("J1", project, ["one", "two"]), ...prints("J1", project, ["one", "two", "three"], "01B"));
  const streams = [await open("project", "P1"), await open("project", "P1", -1), await open("project", "P1", 2)];
  await on.add(...prints("J1", project, ["one", "two", "three", "four"], "01C"));
  for (const { lines } of streams) await until(() => lines().at(-1) === "four", { message: "what is new" });
  expect(streams.map(({ lines }) => lines())).toEqual([
    ["one", "two", "three", "four"],
    ["one", "two", "three", "four"],
    ["two", "three", "four"],
  ]);
});

describe("live text", () => {
  it("is sent as it comes, a message for each job, and ends with a session that the call names", async () => {
    const project = about("project", "P1");
    await on.add(...prints("J1", project, ["one"]));
    const named = await open("project", "P1", 0, { session: "01A" });
    const free = await open("project", "P1");
    for (const { lines } of [named, free]) await until(() => lines().length === 1, { message: "the backlog" });
    await on.add(jobFacts("J1", "01A").writes("two", 1), ...prints("J2", project, ["three"]));
    await on.add(...prints("J3", about("project", "P2"), ["of another"]), ended("01A"));
    await on.add(...prints("J4", project, ["four"], "01B"));
    await named.end;
    expect(named.lines()).toEqual(["one", "two", "three"]);
    await until(() => free.lines().length === 4, { message: "the next session's line" });
    expect(free.lines()).toEqual(["one", "two", "three", "four"]);
    const reported = free.got.map(({ deployment_id, instance_id, lines }) => [
      deployment_id,
      instance_id,
      lines.length,
    ]);
    expect(reported).toEqual([
      ["J1", "01A", 1],
      ["J1", "01A", 1],
      ["J2", "01A", 1],
      ["J4", "01B", 1],
    ]);
  });

  it("is of a target that was polled only after its job had begun to print", async () => {
    const stream = await open("project", "P1");
    await on.add(...prints("J1", about("target", "T1"), ["early"]));
    await until(() => on.requests.some(({ collection }) => collection === "vagrant.targets"), {
      message: "the question",
    });
    const target = Target.fromPartial({ resource_id: "T1", project: { resource_id: "P1" } });
    on.hold("targets", { T1: Target.encode(target).finish() });
    await until(() => stream.lines().length > 0, { message: "the target's line" });
    expect(stream.lines()).toEqual(["early"]);
  });
});

describe("an entry", () => {
  it("is a line, or a piece of one, when it was seen", async () => {
    const job = jobFacts("J1", "01A");
    const text = (value: string, more: Partial<Fields> = {}): Fields => ({
      ...job.writes(""),
      ...more,
      detail: { $case: "text", value: { text: value, noise: value === "" } },
    });
    await on.add(
      job.is("job.queued", Job_State.RUNNING, about("project", "P1")),
      text("a\r\n\n  b\n"),
      text(""),
      text("10%"),
      text("\n"),
      text("c\n", { occurred_at: { seconds: 7n, nanos: 8 } }),
    );
    const stream = await open("project", "P1");
    await until(() => stream.lines().length === 6, { message: "the lines" });
    const entries = stream.got.flatMap(({ lines }) => lines.map(({ line, timestamp }) => [line, timestamp?.seconds]));
    expect(entries).toEqual([
      ["a", 1_000n],
      ["", 1_000n],
      ["  b", 1_000n],
      ["10%", 1_002n],
      ["", 1_003n],
      ["c", 7n],
    ]);
  });
});
