import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import { GetJobStreamResponse } from "@tapedeck/proto/vagrant/vagrant";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PendingFrame } from "../../record/frames/pending-frame.ts";
import { masks } from "../masks.ts";
import { maskEntriesInThread, threadMasks } from "./thread-masks.ts";

const texts = fc.array(
  fc.oneof(fc.constantFrom("TOKEN=hunter2\n", "password: x ", "ghp_", "é", "\n", "://bob:pw@host "), fc.string()),
  { maxLength: 20 },
);
const printed = (message: string) =>
  Event.encode(
    Event.fromPartial({ event_type: { $case: "skaffoldLogEvent", value: { message, task_id: "Build-0" } } }),
  ).finish();
const terminal = (lines: readonly string[]) =>
  GetJobStreamResponse.encode(
    GetJobStreamResponse.fromPartial({
      event: {
        $case: "terminal",
        value: { events: lines.map((msg) => ({ event: { $case: "line", value: { msg } } })) },
      },
    }),
  ).finish();
const streamed = (bytes: Uint8Array) =>
  Observation.encode(
    Observation.fromPartial({
      result: { $case: "streamed", value: { job: "j", bytes: Buffer.from(bytes), stream: "s" } },
    }),
  ).finish();

describe("entries that another thread masks", () => {
  it("is masked as in this one, byte for byte, in frames that are or are not messages", async () => {
    const apart = threadMasks("skaffold");
    const { mask, maskAfter } = masks.skaffold;
    await fc.assert(
      fc.asyncProperty(texts, fc.string(), fc.uint8Array({ maxLength: 60 }), async (parts, tail, noise) => {
        for (const bytes of [printed(parts.join("")), noise]) {
          const [here, there] = [mask("v2", bytes), await apart.mask("v2", bytes)];
          expect(Buffer.compare(here.bytes, there.bytes)).toBe(0);
          expect({ ...there, bytes: [] }).toEqual({ ...here, bytes: [] });
          const [after, afterThere] = [maskAfter?.("v2", bytes, tail), await apart.maskAfter("v2", bytes, tail)];
          expect(Buffer.compare(after?.bytes ?? Buffer.alloc(0), afterThere.bytes)).toBe(0);
          expect({ ...afterThere, bytes: [] }).toEqual({ ...after, bytes: [] });
        }
      }),
      { numRuns: 60 },
    );
  });

  it("is known for all entries of an observation, so that none of them is masked here", async () => {
    const lines = Array.from({ length: 2_000 }, (_, n) => `line ${n} TOKEN=hunter${n}`);
    const observation = streamed(terminal(lines));
    const here: number[] = [];
    const mask = await maskEntriesInThread("vagrant", (type, bytes) => {
      here.push(bytes.byteLength);
      return masks.vagrant.mask(type, bytes);
    })("jobs", observation);
    const entries = masks.vagrant.entriesOf?.("jobs", Observation.decode(observation)) ?? [];
    expect(entries).toHaveLength(lines.length);
    for (const { type, bytes } of entries) {
      const [expected, given] = [masks.vagrant.mask(type, bytes), mask(type, bytes)];
      expect(Buffer.compare(given.bytes, expected.bytes)).toBe(0);
      expect(given.redacted).toBe(expected.redacted);
    }
    expect(here).toEqual([]);
    mask("hashicorp.vagrant.Job", Buffer.from("\n\x01x"));
    expect(here).toEqual([3]);
  });

  it("says so where an observation can't be read", async () => {
    const apart = maskEntriesInThread("vagrant", masks.vagrant.mask);
    await expect(apart("jobs", streamed(Buffer.from([0xff])))).rejects.toThrow();
  });
});

describe("a large frame", () => {
  it("is masked here neither whole nor in part, and frames keep their order", async () => {
    const here: number[] = [];
    const apart = threadMasks("skaffold");
    const held = [much("TOKEN=hunter2 "), much("TOKEN=hunter2\n"), "small TOKEN=x"].map(
      (text) =>
        new PendingFrame({ bytes: printed(text), indexes: [1n] }, timestampNow(), {
          mask(bytes) {
            here.push(bytes.byteLength);
            return masks.skaffold.mask("v2", bytes);
          },
          maskApart: (bytes) => apart.mask("v2", bytes),
          timestampOf: () => undefined,
        }),
    );
    for (const frame of held) await frame.prepare("on");
    const masked = held.map((frame) => frame.masked("on"));
    for (const frame of held) frame.masked("off");
    expect(held.map((frame) => frame.masked("on"))).toEqual(masked);
    expect(here.every((size) => size < 48 * 1024)).toBe(true);
    expect(here).toHaveLength(1);
    for (const { redacted } of masked) expect(redacted).toBeGreaterThan(0);
  });
});

function much(text: string): string {
  return text.repeat(Math.ceil(400_000 / text.length));
}
