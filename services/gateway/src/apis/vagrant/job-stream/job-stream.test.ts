import { Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { LogReader } from "@tapedeck/shared/log/log";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CallContext } from "../../../call-context.ts";
import { ended, type JobHarness, jobBytes, jobFacts, jobHarness, lineBytes, started } from "../testing/job-harness.ts";
import { openJob, short } from "../testing/open-job.ts";
import type { Fields } from "../testing/vagrant-harness.ts";
import { type JobStreamOptions, jobStream } from "./job-stream.ts";

let on: JobHarness;
beforeEach(async () => {
  on = await jobHarness();
  on.session("01A");
});
afterEach(() => on[Symbol.asyncDispose]());

const { QUEUED, WAITING, RUNNING, SUCCESS, ERROR } = Job_State;
const hour = 3_600_000;

/** A job's id, which says when it was queued. */
function idAt(time: number, random = "A".repeat(16)): string {
  const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  return Array.from({ length: 10 }, (_, place) => digits[Math.floor(time / 32 ** (9 - place)) % 32]).join("") + random;
}

const id = idAt(Date.now() - 60_000);
const other = idAt(Date.now() - 60_000, "B".repeat(16));
const result = { run: { run_result: true } };
const a = () => jobFacts(id, "01A");
const b = () => jobFacts(id, "01B");

const open = (context: Partial<CallContext> = {}, job = id, options: JobStreamOptions = {}) =>
  openJob(on, job, context, options);

/** Lines of output and what they are in, without the batches that they came in. */
function flat(messages: readonly string[]): string[] {
  return messages.flatMap((message) => {
    const [what, ...texts] = message.split(" ");
    return what === "live" || what === "buffered" ? texts.map((text) => `${what} ${text}`) : [message];
  });
}

type Scenario = {
  readonly title: string;
  /** Recorded before the call. */
  readonly past?: () => readonly Fields[];
  /** Recorded after it. */
  readonly later?: () => readonly Fields[];
  readonly reported: readonly string[];
  readonly end?: string;
  readonly session?: string;
  readonly graceMs?: number;
};

/** gRPC's UNAVAILABLE. */
const removed = "14";

const ran = (job = a()) => [
  started("01A"),
  job.is("job.queued", QUEUED),
  job.is("job.started", RUNNING),
  job.writes("one"),
  job.writes("two"),
];

const scenarios: readonly Scenario[] = [
  {
    title: "from the beginning to the end",
    past: () => [a().is("job.queued", QUEUED)],
    later: () => {
      const job = a();
      return [
        job.is("job.assigned", WAITING),
        job.is("job.started", RUNNING),
        job.writes("one"),
        job.is("job.succeeded", SUCCESS, { result }),
        job.writes("two"),
        job.isWhole(),
      ];
    },
    reported: [
      "open",
      "UNKNOWN>QUEUED",
      "QUEUED>WAITING",
      "WAITING>RUNNING",
      "live one",
      "RUNNING>SUCCESS",
      "live two",
      "complete",
    ],
  },
  {
    title: "recorded messages, then live ones",
    past: () => ran(),
    later: () => [a().writes("three", 2), a().is("job.failed", ERROR), a().isWhole()],
    reported: ["open", "UNKNOWN>RUNNING", "buffered one", "buffered two", "live three", "RUNNING>ERROR", "complete"],
  },
  {
    title: "a job that was finished long ago",
    past: () => {
      const job = a();
      const next = jobFacts(other, "01B");
      return [
        ...ran(job),
        job.is("job.succeeded", SUCCESS, { result }),
        job.writes("three"),
        ended("01A"),
        started("01B"),
        next.is("job.queued", QUEUED),
        next.writes("of another"),
      ];
    },
    reported: ["open", "UNKNOWN>SUCCESS", "buffered one", "buffered two", "buffered three", "complete"],
  },
  {
    title: "nothing of other jobs",
    past: () => {
      const next = jobFacts(other, "01A");
      const job = a();
      return [next.is("job.queued", QUEUED), next.writes("zero"), ...ran(job), next.writes("other"), next.isWhole()];
    },
    later: () => {
      const next = jobFacts(other, "01A");
      return [next.writes("other", 1), next.is("job.succeeded", SUCCESS), next.isWhole(), a().is("job.lost", RUNNING)];
    },
    reported: ["open", "UNKNOWN>RUNNING", "buffered one", "buffered two"],
    end: removed,
  },
  {
    title: "that it is being canceled",
    past: () => ran(),
    later: () => [
      a().is("job.cancel_requested", RUNNING, { cancel_time: { seconds: 1n } }),
      a().is("job.canceled", ERROR, { cancel_time: { seconds: 1n } }),
      a().isWhole(),
    ],
    reported: [
      "open",
      "UNKNOWN>RUNNING",
      "buffered one",
      "buffered two",
      "RUNNING>RUNNING canceling",
      "RUNNING>ERROR canceling",
      "complete",
    ],
  },
  {
    title: "facts that one observation reported as one state",
    past: () => [a().is("job.queued", QUEUED)],
    later: () => [a().is("job.assigned", SUCCESS), a().also("job.started"), a().also("job.succeeded"), a().isWhole()],
    reported: ["open", "UNKNOWN>QUEUED", "QUEUED>SUCCESS", "complete"],
  },
  {
    title: "the end at once where the output could not be read again",
    past: () => ran(),
    later: () => [a().is("job.succeeded", SUCCESS), a().isCut()],
    reported: ["open", "UNKNOWN>RUNNING", "buffered one", "buffered two", "RUNNING>SUCCESS", "complete"],
  },
  {
    title: "the messages recorded after that to whoever comes later",
    past: () => [...ran(), a().is("job.succeeded", SUCCESS), a().isCut(), a().writes("three", 2), a().isWhole()],
    reported: ["open", "UNKNOWN>SUCCESS", "buffered one", "buffered two", "buffered three", "complete"],
  },
  {
    title: "the end at once of a job that was never started",
    past: () => [a().is("job.queued", QUEUED)],
    later: () => [a().is("job.canceled", ERROR, { ack_time: undefined, cancel_time: { seconds: 1n } })],
    reported: ["open", "UNKNOWN>QUEUED", "QUEUED>ERROR canceling", "complete"],
  },
  {
    title: "the end after a while without any word of it",
    past: () => [...ran(), a().is("job.succeeded", SUCCESS)],
    later: () => [a().writes("three", 2)],
    graceMs: 4_000,
    reported: ["open", "UNKNOWN>SUCCESS", "buffered one", "buffered two", "live three", "complete"],
  },
  {
    title: "the end of its session as the end of its output",
    past: () => [...ran(), a().is("job.succeeded", SUCCESS)],
    later: () => [a().writes("three", 2), ended("01A"), a().writes("late", 3)],
    reported: ["open", "UNKNOWN>SUCCESS", "buffered one", "buffered two", "live three", "complete"],
  },
  {
    title: "that its server was gone",
    past: () => ran(),
    later: () => [a().writes("three", 2), ended("01A")],
    reported: ["open", "UNKNOWN>RUNNING", "buffered one", "buffered two", "live three"],
    end: removed,
  },
  {
    title: "that its server was gone long ago",
    past: () => [...ran(), ended("01A"), started("01B"), jobFacts(other, "01B").is("job.queued", QUEUED)],
    reported: ["open", "UNKNOWN>RUNNING", "buffered one", "buffered two"],
    end: removed,
  },
  {
    title: "how it went on in a session that found it again",
    past: () => [...ran(), ended("01A"), started("01B"), b().is("job.queued", RUNNING), b().also("job.started")],
    later: () => [b().is("job.canceled", ERROR), b().isWhole()],
    reported: ["open", "UNKNOWN>RUNNING", "buffered one", "buffered two", "RUNNING>ERROR", "complete"],
  },
  {
    title: "once what two sessions recorded of it",
    past: () => {
      const again = b();
      return [
        ...ran(),
        ended("01A"),
        started("01B"),
        again.is("job.queued", RUNNING),
        ...["one", "two", "three"].map((text) => again.writes(text)),
        again.is("job.succeeded", SUCCESS),
        again.isWhole(),
      ];
    },
    reported: ["open", "UNKNOWN>SUCCESS", "buffered one", "buffered two", "buffered three", "complete"],
  },
  {
    title: "one session where the call names one",
    past: () => [...ran(), ended("01A"), started("01B"), b().is("job.queued", RUNNING), b().is("job.failed", ERROR)],
    reported: ["open", "UNKNOWN>RUNNING", "buffered one", "buffered two"],
    session: "01A",
    end: removed,
  },
  {
    title: "of a session that continues",
    past: () => [...ran(), ended("01A"), { kind: "upstream.restored", channel: "tapedeck", session: "01A" }],
    later: () => [a().is("job.succeeded", SUCCESS), a().isWhole()],
    reported: ["open", "UNKNOWN>RUNNING", "buffered one", "buffered two", "RUNNING>SUCCESS", "complete"],
  },
  {
    title: "messages that nobody knows, where they came",
    past: () => [...ran(), a().mirrors(Buffer.from("320100", "hex")), a().writes("three", 2)],
    later: () => [a().mirrors(Buffer.from("320101", "hex")), a().is("job.succeeded", SUCCESS), a().isWhole()],
    reported: [
      ...["open", "UNKNOWN>RUNNING", "buffered one", "buffered two", "unknown 320100", "buffered three"],
      ...["unknown 320101", "RUNNING>SUCCESS", "complete"],
    ],
  },
];

describe("the messages of a stream", () => {
  it.each(scenarios)("$title", async ({ past, later, reported, session, graceMs = hour, end = "OK" }) => {
    await on.add(...(past?.() ?? []));
    const stream = await open(session === undefined ? {} : { session }, id, { graceMs });
    const before = reported.filter((one) => !one.startsWith("live")).length;
    await until(() => flat(stream.got).length >= Math.min(2, before), { message: "the stream's beginning" });
    for (const fields of later?.() ?? []) await on.add(fields);
    expect(await stream.end).toBe(end);
    expect(flat(stream.got)).toEqual(reported);
  });
});

it("says that a job is over only when GetJob says so, too", async () => {
  let isBehind = false;
  let refused = 0;
  const query: JobHarness["deps"]["query"] = {
    ...on.deps.query,
    async readState(request) {
      if (isBehind && request.min_position === on.position(2)) {
        refused += 1;
        throw new TapedeckError("not_ready", "the tables are behind");
      }
      return on.deps.query.readState(request);
    },
  };
  await on.add(a().is("job.queued", QUEUED));
  const { got, end } = await openJob({ ...on, deps: { ...on.deps, query } }, id);
  await until(() => got.length === 2, { message: "the stream's beginning" });
  isBehind = true;
  await on.add(a().is("job.canceled", ERROR, { ack_time: undefined }));
  await until(() => refused > 1, { message: "questions to tables that are behind" });
  expect(got).toEqual(["open", "UNKNOWN>QUEUED"]);
  isBehind = false;
  expect(await end).toBe("OK");
  expect(got.slice(2)).toEqual(["QUEUED>ERROR", "complete"]);
});

it("is about the newest position at the call", async () => {
  const end = await on.add(...ran());
  expect((await open()).head.position).toBe(on.position(end));
});

it("begins with a job that is only about to be recorded", async () => {
  const young = idAt(Date.now());
  const opened = open({}, young);
  await on.add(jobFacts(young, "01A").is("job.queued", QUEUED));
  const { got } = await opened;
  await until(() => got.length === 2, { message: "the job" });
  expect(got).toEqual(["open", "UNKNOWN>QUEUED"]);
});

describe("a job's beginning is found", () => {
  it.each([
    ["by the time in its id", idAt(Date.now() - hour / 2)],
    ["though the server's clock was behind", idAt(Date.now() - 48 * hour)],
    ["though the server's clock was ahead", idAt(Date.now() + 48 * hour)],
    ["though its id has a time that no calendar has", "7ZZZZZZZZZAAAAAAAAAAAAAAAA"],
    ["though its id says nothing", "job-1"],
  ])("%s", async (_, job) => {
    await on.add(...ran(jobFacts(job, "01A")), jobFacts(job, "01A").is("job.lost", RUNNING));
    const { got, end } = await open({}, job);
    expect(await end).toBe(removed);
    expect(flat(got)).toEqual(["open", "UNKNOWN>RUNNING", "buffered one", "buffered two"]);
  });
});

it("is sent from its beginning, though a wrong clock points into the middle of it", async () => {
  await on.add(...ran(), a().is("job.lost", RUNNING));
  const { log } = on.deps;
  const misled = { ...on.deps, log: () => ({ ...log(), firstSince: async () => offsetOf(4) }) };
  const { messages } = await jobStream(misled, { job_id: id }, on.context());
  const got: string[] = [];
  await expect(async () => {
    for await (const message of messages) got.push(short(message));
  }).rejects.toMatchObject({ code: 14 });
  expect(flat(got)).toEqual(["open", "UNKNOWN>RUNNING", "buffered one", "buffered two"]);
});

describe("a call is refused", () => {
  it.each([
    ["of a job that nobody knows", other, {}, { code: 5, message: "job not found" }],
    ["without a job", "", {}, { code: 5, message: "job not found" }],
    ["of a session without the job", id, { session: "01B" }, { code: 5 }],
    ["at a moment", id, { at: "now" }, { code: "invalid_argument", details: { field: "at" } }],
    ["after a position", id, { after: "start" }, { code: "invalid_argument", details: { field: "after" } }],
  ])("%s", async (_, job, context, error) => {
    await on.add(...ran());
    await expect(open(context, job)).rejects.toMatchObject(error);
  });
});

describe("messages", () => {
  const many = (count: number, text = (index: number) => String(index)) => {
    const job = a();
    return [job.is("job.queued", RUNNING), ...Array.from({ length: count }, (_, index) => job.writes(text(index)))];
  };
  const sizes = (got: readonly string[]) =>
    got.filter((message) => message.startsWith("buffered")).map((message) => message.split(" ").length - 1);

  it("have 64 events at most", async () => {
    await on.add(...many(150));
    const { got } = await open();
    await until(() => sizes(got).length === 3, { message: "the output" });
    expect(sizes(got)).toEqual([64, 64, 22]);
    expect(flat(got).slice(2)).toEqual(Array.from({ length: 150 }, (_, index) => `buffered ${index}`));
  });

  it("have 1 MiB at most, but for a larger event", async () => {
    const large = ["a".repeat(600_000), "b".repeat(400_000), "c".repeat(1_500_000), "d", "e"];
    for (const fields of many(large.length, (index) => large[index] ?? "")) await on.add(fields);
    const { got } = await open();
    await until(() => sizes(got).length === 3, { message: "the output" });
    expect(sizes(got)).toEqual([2, 1, 2]);
  });

  it("have each event as it came", async () => {
    const odd = [
      Buffer.alloc(0),
      Buffer.from("1a00", "hex"),
      Buffer.from("2a06fffe0080c328", "hex"),
      Buffer.from("9a0603ff0001", "hex"),
      Buffer.from(lineBytes("line")),
    ];
    const job = a();
    await on.add(job.is("job.queued", RUNNING), ...odd.map((event) => job.writes(event)), job.is("job.lost", RUNNING));
    const { bytes, end } = await open();
    await end;
    const events = odd.map((event) => Buffer.concat([Buffer.from([0x0a, event.length]), event]));
    const terminal = Buffer.concat([...events, Buffer.from("1001", "hex")]);
    expect(bytes.at(-1)?.toString("hex")).toBe(
      Buffer.concat([Buffer.from([0x1a, terminal.length]), terminal]).toString("hex"),
    );
  });

  it("have the text of an event that the log could not take", async () => {
    const job = a();
    const cut = { ...job.writes("what is left"), original: { type: "…", size: 9_000_000n } };
    await on.add(job.is("job.queued", RUNNING), cut, job.is("job.lost", RUNNING));
    const { got, end } = await open();
    await end;
    expect(got.at(-1)).toBe("buffered what is left");
  });

  it("have the job's own bytes, with what nobody knows in them", async () => {
    // A result with field 15 in it, and field 120 of the job.
    const bytes = Buffer.concat([
      jobBytes(id, SUCCESS),
      Buffer.from("da06037a01ff", "hex"),
      Buffer.from("c20701ff", "hex"),
    ]);
    const fields = a().is("job.queued", SUCCESS);
    await on.add({ ...fields, original: { ...fields.original, bytes, size: BigInt(bytes.length) } }, a().isWhole());
    const { bytes: got, end } = await open();
    await end;
    const [, state, complete] = got.map((message) => message.toString("hex"));
    expect(state).toContain(bytes.toString("hex"));
    expect(complete).toBe("2a0512037a01ff");
  });
});

it("reads no more than it is asked for", async () => {
  const job = a();
  await on.add(job.is("job.queued", RUNNING), ...Array.from({ length: 900 }, (_, index) => job.writes(String(index))));
  let read = 0;
  const { log } = on.deps;
  const counting = (): LogReader => ({
    ...log(),
    async *history(...of) {
      for await (const recorded of log().history(...of)) {
        read += 1;
        yield recorded;
      }
    },
  });
  const { messages } = await jobStream({ ...on.deps, log: counting }, { job_id: id }, on.context());
  const reader = messages[Symbol.asyncIterator]();
  for (let count = 0; count < 4; count++) await reader.next();
  expect(read).toBeLessThan(200);
  await reader.return?.();
});
