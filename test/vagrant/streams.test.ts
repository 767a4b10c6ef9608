import { line } from "@tapedeck/fakes/vagrant/client";
import { commandResult, setUpShop } from "@tapedeck/fakes/vagrant/shop";
import { Job_State, GetJobStreamResponse_Terminal_Event as TerminalEvent } from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Following, linesOf } from "./client.ts";
import { base64, largestBatch, outputOf, type StreamItem, streamItemsIn } from "./output.ts";
import { lines, startVagrantStack, type VagrantStack } from "./stack.ts";

const encoded = (events: readonly TerminalEvent[]) => events.map((event) => base64(TerminalEvent, event));
const outputIn = ({ messages }: Following) => encoded(outputOf(messages));

/** Every kind of event, and an unknown one. */
const odd: readonly TerminalEvent[] = [
  line("==> web1: Booting VM...\n    web1: over several lines\r"),
  ...[{ status: "" }, { status: "running", msg: "half done", step: true }].map((status) =>
    TerminalEvent.fromPartial({ event: { $case: "status", value: status } }),
  ),
  raw(Buffer.from([0xff, 0xfe, 0x00, 0x80, 0xc3, 0x28])),
  raw(Buffer.from("\u001b[31mred\u001b[0m"), true),
  TerminalEvent.fromPartial({
    event: { $case: "table", value: { headers: ["a", "b"], rows: [{ entries: [{ value: "1", color: "red" }, {}] }] } },
  }),
  TerminalEvent.fromPartial({ event: { $case: "named_values", value: { values: [{ name: "n", value: "v" }] } } }),
  TerminalEvent.fromPartial({ event: { $case: "step_group", value: {} } }),
  TerminalEvent.fromPartial({
    event: { $case: "step", value: { id: 7, msg: "m", output: Buffer.from([0x80, 0xff]) } },
  }),
  TerminalEvent.fromPartial({ event: { $case: "step_group", value: { close: true } } }),
  // Field 99 of an event, and nothing else.
  TerminalEvent.decode(Buffer.from([0x9a, 0x06, 0x03, 0xff, 0x00, 0x01])),
  TerminalEvent.fromPartial({ timestamp: { seconds: 1_795_188_503n, nanos: 5 } }),
  line(""),
  line("last"),
];

function raw(data: Buffer, stderr = false): TerminalEvent {
  return TerminalEvent.fromPartial({ event: { $case: "raw", value: { data, stderr } } });
}

describe("the output of a job", () => {
  const expected = encoded([...odd, ...lines("more ", 300), ...lines("last ", 20)]);
  let on: VagrantStack;
  let job: string;
  let project: string;
  let live: Following;
  let joined: Following;
  let log: Following;
  beforeAll(async () => {
    on = await startVagrantStack();
    const shop = setUpShop(on.fake);
    project = shop.project;
    job = shop.queue();
    await on.waitForState(job, Job_State.QUEUED);
    live = on.client.job(job);
    await until(() => stepsOf(live).length === 1, { message: "the first state" });
    await until(() => on.fake.streams() > 0, { message: "the tap to follow the job" });
    log = on.client.projectLog(project, -1);
    on.fake.jobs.assign(job);
    on.fake.jobs.ack(job);
    on.fake.jobs.write(job, odd);
    await on.waitForOutput(job, odd.length);
    joined = on.client.job(job);
    await until(() => outputIn(joined).length === odd.length, { message: "the replay to a reader that joins" });
    on.fake.jobs.write(job, lines("more ", 300));
    await on.waitForOutput(job, odd.length + 300);
    // The last lines may reach no reader before the job is over.
    const release = on.fake.holdStreams("output");
    on.fake.jobs.write(job, lines("last ", 20));
    on.fake.jobs.complete(job, commandResult({ run_result: true }));
    release();
    await on.waitForState(job, Job_State.SUCCESS);
    await on.waitForOutput(job, expected.length);
  });
  afterAll(() => on[Symbol.asyncDispose]());

  it("is the same for a reader from the beginning, one that joins, and one that comes after the end", async () => {
    const late = on.client.job(job);
    for (const [name, reader] of Object.entries({ live, joined, late })) {
      expect(await reader.end, name).toMatchObject({ code: 0 });
      expect(outputIn(reader), name).toEqual(expected);
      expect(largestBatch(reader.messages), name).toBeLessThanOrEqual(64);
    }
    expect(stepsOf(live)).toEqual(["UNKNOWN>QUEUED", "QUEUED>WAITING", "WAITING>RUNNING", "RUNNING>SUCCESS"]);
    expect(stepsOf(joined)).toEqual(["UNKNOWN>RUNNING", "RUNNING>SUCCESS"]);
    expect(stepsOf(late)).toEqual(["UNKNOWN>SUCCESS"]);
    expect(buffered(live)).toBe(0);
    expect(buffered(joined)).toBe(odd.length);
    expect(buffered(late)).toBe(expected.length);
    // The server's last output came after the end, to readers that were connected before it.
    expect(orderOf(live)).toMatch(/^open (state ){3}output state (output )?complete$/);
    expect(orderOf(joined)).toMatch(/^open state output state (output )?complete$/);
    expect(orderOf(late)).toBe("open state output complete");
  });

  it("is served as the project's log text, without what is not text", async () => {
    await until(() => linesOf(log.messages).includes("last 19"), { message: "the log's last line" });
    const printed = linesOf(log.messages);
    expect(printed.filter((one) => /^(more|last) /.test(one))).toEqual([
      ...Array.from({ length: 300 }, (_, index) => `more ${index}`),
      ...Array.from({ length: 20 }, (_, index) => `last ${index}`),
    ]);
    expect(printed.join("\n")).toContain("==> web1: Booting VM...");
    const again = on.client.projectLog(project, -1);
    await until(() => linesOf(again.messages).length >= printed.length, { message: "the log once more" });
    expect(linesOf(again.messages)).toEqual(printed);
    const few = on.client.projectLog(project, 7);
    await until(() => linesOf(few.messages).length >= 7, { message: "its newest lines" });
    expect(linesOf(few.messages)).toEqual(printed.slice(-7));
    const byDefault = on.client.projectLog(project);
    await until(() => linesOf(byDefault.messages).length >= 50, { message: "as many as there are by default" });
    expect(linesOf(byDefault.messages)).toEqual(printed.slice(-50));
    for (const one of [log, again, few, byDefault]) {
      expect(one.isOver()).toBe(false);
      one.cancel();
    }
  });

  it("is recorded byte for byte", async () => {
    const written = (await on.eventsOf("jobs")).filter(({ kind }) => kind === "terminal.written");
    expect(written.map(({ original }) => original?.bytes.toString("base64"))).toEqual(expected);
    const details = written.map(({ detail }) => (detail?.$case === "text" ? detail.value : undefined));
    expect(details.map((detail) => detail?.output?.index)).toEqual(expected.map((_, index) => BigInt(index)));
    // An empty status, the beginning and end of a group, an unknown event, a time alone.
    const noise = details.flatMap((detail, index) => (detail?.noise ? [index] : []));
    expect(noise).toEqual([1, 7, 9, 10, 11]);
  });

  it("is the same after a restart, without the server", async () => {
    const before = linesOf(log.messages);
    await on.fake.goAway();
    await on.restart();
    const later = on.client.job(job);
    expect(await later.end).toMatchObject({ code: 0 });
    expect(outputIn(later)).toEqual(expected);
    const again = on.client.projectLog(project, -1);
    await until(() => linesOf(again.messages).length >= before.length, { message: "the log after the restart" });
    expect(linesOf(again.messages)).toEqual(before);
    again.cancel();
  });
});

function stepsOf({ messages }: Following): string[] {
  return streamItemsIn(messages).flatMap((one) => (one.is === "state" ? [one.step] : []));
}

function buffered({ messages }: Following): number {
  return streamItemsIn(messages).filter((one) => one.is === "output" && one.isBuffered).length;
}

/** "open state output state complete": the order of the items, with consecutive output as one. */
function orderOf({ messages }: Following): string {
  const kinds = streamItemsIn(messages).map((one: StreamItem) => one.is);
  return kinds.filter((kind, index) => kind !== "output" || kinds[index - 1] !== "output").join(" ");
}
