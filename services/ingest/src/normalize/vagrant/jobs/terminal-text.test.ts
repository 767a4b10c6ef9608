import { GetJobStreamResponse_Terminal_Event as TerminalEvent } from "@tapedeck/proto/vagrant/vagrant";
import { describe, expect, it } from "vitest";
import { writtenFact } from "./terminal-text.ts";

const at = { index: 7, stream: "s", offset: 3 };
type Said = NonNullable<TerminalEvent["event"]>;

function reported(event: Said | undefined, more: Partial<TerminalEvent> = {}) {
  return writtenFact("j", TerminalEvent.encode(TerminalEvent.fromPartial({ event, ...more } as never)).finish(), at);
}

describe("the text of a terminal event", () => {
  it.each<[string, unknown, string, string]>([
    ["a line", { $case: "line", value: { msg: "==> web1: up", style: "info-bold" } }, "==> web1: up\n", "info-bold"],
    ["some lines", { $case: "line", value: { msg: "a\nb", style: "" } }, "a\nb\n", ""],
    ["an empty line", { $case: "line", value: { msg: "" } }, "\n", ""],
    ["a part of one", { $case: "line", value: { msg: "...", disable_new_line: true } }, "...", ""],
    ["no status any more", { $case: "status", value: {} }, "", ""],
    ["a status", { $case: "status", value: { msg: "Booting", status: "ok", step: true } }, "Booting\n", "ok"],
    ["bytes", { $case: "raw", value: { data: Buffer.from("a\r\n") } }, "a\r\n", ""],
    ["bytes of stderr", { $case: "raw", value: { data: Buffer.from("é"), stderr: true } }, "é", "stderr"],
    ["bytes that are no text", { $case: "raw", value: { data: Buffer.from([0x61, 0xff, 0x62]) } }, "a\ufffdb", ""],
    [
      "values",
      {
        $case: "named_values",
        value: {
          values: [
            { name: "a", value: "1" },
            { name: "b", value: "" },
          ],
        },
      },
      "a: 1\nb: \n",
      "",
    ],
    [
      "a table",
      { $case: "table", value: { headers: ["h", "i"], rows: [{ entries: [{ value: "1" }, { value: "2" }] }] } },
      "h\ti\n1\t2\n",
      "",
    ],
    ["the begin of steps", { $case: "step_group", value: {} }, "", ""],
    ["a step", { $case: "step", value: { msg: "m", status: "ok", output: Buffer.from("out") } }, "m\nout", "ok"],
  ])("%s", (_, event, text, level) => {
    const { detail, subject, kind } = reported(event as Said);
    expect({ kind, subject }).toEqual({ kind: "terminal.written", subject: "j" });
    const output = { job: "j", index: 7n, stream: "s", offset: 3n };
    expect(detail?.value).toMatchObject({ text, level, noise: text === "", output });
  });

  it("has the time of an event, if one has a time", () => {
    expect(reported(undefined)).not.toHaveProperty("occurredAt");
    expect(reported(undefined, { timestamp: { seconds: 5n, nanos: 6 } }).occurredAt).toEqual({ seconds: 5n, nanos: 6 });
    expect(reported(undefined, { timestamp: { seconds: -(1n << 60n), nanos: 6 } })).not.toHaveProperty("occurredAt");
  });

  it("is nothing where an event can't be read or is not known", () => {
    for (const bytes of [Buffer.from([0xff]), Buffer.from([0x0a, 0x7f]), Buffer.from([0xa2, 0x06, 0x01, 0x61])]) {
      expect(writtenFact("j", bytes, at).detail?.value).toMatchObject({ text: "", noise: true });
    }
  });

  it("is its first line in short, and all of it up to a limit", () => {
    const msg = `\u001b[32m\n  ${"x".repeat(300_000)}`;
    const { summary, detail } = reported({ $case: "line", value: { msg } } as Said);
    expect(summary).toMatch(/^x{199}…$/);
    expect(detail?.$case === "text" && detail.value.text.length).toBe(100_000);
  });
});
