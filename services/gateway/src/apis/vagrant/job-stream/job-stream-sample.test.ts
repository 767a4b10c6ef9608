import { readFileSync } from "node:fs";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { GetJobStreamResponse, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type JobHarness, jobFacts, jobHarness } from "../testing/job-harness.ts";
import { openJob } from "../testing/open-job.ts";
import type { Fields } from "../testing/vagrant-harness.ts";

let on: JobHarness;
beforeEach(async () => {
  on = await jobHarness();
  on.session("01A");
});
afterEach(() => on[Symbol.asyncDispose]());

/** What a real server sent on its streams, by their names. */
const sample = new Map<string, Buffer[]>();
for (const { stream, wire } of sampleMessages()) sample.set(stream, [...(sample.get(stream) ?? []), wire]);

describe("a real server's stream comes back byte for byte:", () => {
  it.each([...sample])("%s", async (_, messages) => {
    const job = GetJobStreamResponse.decode(messages[1] ?? Buffer.alloc(0)).event;
    const id = job?.$case === "state" ? (job.value.job?.id ?? "") : "";
    const facts = jobFacts(id, "01A");
    const steps = messages.slice(1).map((message): { readonly isPast: boolean; readonly events: readonly Fields[] } => {
      const { event } = GetJobStreamResponse.decode(message);
      if (event?.$case === "complete") return { isPast: false, events: [facts.isWhole()] };
      if (event?.$case === "terminal") {
        const events = inside(inside([message], 3), 1).map((one) => facts.writes(one));
        return { isPast: event.value.buffered, events };
      }
      if (event?.$case !== "state") throw new Error("an unknown message");
      const isPast = event.value.previous === Job_State.UNKNOWN;
      const kind = isPast ? "job.queued" : "job.assigned";
      return { isPast, events: inside(inside([message], 2), 3).map((one) => facts.is(kind, one)) };
    });
    await on.add(...steps.filter(({ isPast }) => isPast).flatMap(({ events }) => events));
    const { bytes, end } = await openJob(on, id);
    const coming = steps.filter(({ isPast }) => !isPast);
    for (const [index, { events }] of coming.entries()) {
      await until(() => bytes.length === messages.length - coming.length + index, {
        message: "what was reported so far",
      });
      await on.addTogether(...events);
    }
    expect(await end).toBe("OK");
    expect(bytes.map((message) => message.toString("hex"))).toEqual(messages.map((message) => message.toString("hex")));
  });
});

function sampleMessages() {
  const lines = (name: string) =>
    readFileSync(
      new URL(`../../../../../../packages/fakes/recordings/vagrant/samples/${name}`, import.meta.url),
      "utf8",
    )
      .split("\n")
      .filter(Boolean)
      .map((one) => JSON.parse(one));
  const wires = new Map(lines("up.wire.jsonl").map(({ n, b64 }) => [n, Buffer.from(b64, "base64")]));
  return lines("up.jsonl")
    .filter(({ rpc, kind }) => rpc === "GetJobStream" && kind === "stream-message")
    .map(({ n, stream }: { n: number; stream: string }) => ({ stream, wire: wires.get(n) ?? Buffer.alloc(0) }));
}

/** All there is of a field that holds messages. */
function inside(messages: readonly Buffer[], expected: number): Buffer[] {
  return messages.flatMap((message) => {
    const reader = new BinaryReader(message);
    const found: Buffer[] = [];
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      if (field === expected) found.push(Buffer.from(reader.bytes()));
      else reader.skip(type, field);
    }
    return found;
  });
}
