import { GetJobStreamResponse_Terminal_Event as TerminalEvent } from "@tapedeck/proto/vagrant/vagrant";
import { describe, expect, it } from "vitest";
import { mask } from "../mask.ts";
import { job, play, resumed } from "../testing/jobs-play.ts";
import { maskAfter, OutputPieces } from "./output-pieces.ts";

const raw = (text: string) =>
  TerminalEvent.fromPartial({ event: { $case: "raw", value: { data: Buffer.from(text), stderr: false } } });
const line = (msg: string) => TerminalEvent.fromPartial({ event: { $case: "line", value: { msg } } });
const encoded = (...events: readonly TerminalEvent[]) => events.map((event) => TerminalEvent.encode(event).finish());
const said = (bytes: Uint8Array) => {
  const { event } = TerminalEvent.decode(bytes);
  return event?.$case === "raw" ? event.value.data.toString() : event?.$case === "line" ? event.value.msg : "";
};

describe("a job's output", () => {
  const cut = [raw("DB_PASSWORD=hun"), raw("ter2\nnext DB_PASS"), raw("WORD=swordfish\n")];

  it("has secrets masked that its pieces cut, in both", () => {
    const output = new OutputPieces({ mask, maskAfter }, 100);
    const pieces = output.mask("s", 0, encoded(...cut));
    expect(pieces.map(({ bytes }) => said(bytes))).toEqual([
      "DB_PASSWORD=***",
      "****\nnext DB_PASS",
      "WORD=*********\n",
    ]);
    expect(pieces.map(({ redacted }) => redacted)).toEqual([1, 1, 1]);
    expect(pieces.map(({ alone }) => alone && said(alone))).toEqual([
      undefined,
      "ter2\nnext DB_PASS",
      "WORD=swordfish\n",
    ]);
  });

  it("has them masked over several messages, and lines end what they say", () => {
    const output = new OutputPieces({ mask, maskAfter }, 100);
    const [first] = output.mask("s", 0, encoded(cut[0] ?? raw("")));
    const [second] = output.mask("s", 1, encoded(raw("ter2\n")));
    expect([first, second].map((piece) => piece && said(piece.bytes))).toEqual(["DB_PASSWORD=***", "****\n"]);
    const lines = output.mask("s", 2, encoded(line("PASSWORD="), line("hunter")));
    expect(lines.map(({ bytes }) => said(bytes))).toEqual(["PASSWORD=", "hunter"]);
  });

  it("goes on with nothing in another stream, after a hole, and where a window begins", () => {
    for (const [stream, before] of [
      ["t", 1],
      ["s", 2],
    ] as const) {
      const output = new OutputPieces({ mask, maskAfter }, 100);
      output.mask("s", 0, encoded(raw("TOKEN='ab")));
      expect(output.mask(stream, before, encoded(raw("cd'")))[0]?.redacted).toBe(0);
    }
    const output = new OutputPieces({ mask, maskAfter }, 2);
    const pieces = output.mask("s", 1, encoded(raw("TOKEN='ab"), raw("cd'")));
    expect(pieces.map(({ bytes }) => said(bytes))).toEqual(["TOKEN='**", "cd'"]);
  });

  it("is not masked where nothing is to be", () => {
    const output = new OutputPieces({ mask: (_, bytes) => ({ bytes, redacted: 0 }) }, 100);
    expect(
      output
        .mask("s", 0, encoded(...cut))
        .map(({ bytes }) => said(bytes))
        .join(""),
    ).toContain("hunter2");
  });

  it("goes on after a restart, and is known again in a replay", () => {
    const masks = { mask, maskAfter };
    const before = play({}, masks);
    before.list(1_000, job("j", { state: "RUNNING", assigned: 1_000, acked: 1_000 }));
    const stream = before.stream("j", "s1");
    stream.prints(1_001, cut.slice(0, 1));
    const after = resumed(before, {}, masks);
    after.stream("j", "s1", 1).prints(1_002, cut.slice(1));
    const printed = [...before.record, ...after.record].flatMap((seen) =>
      seen.what === "frame" && seen.facts[0].kind === "terminal.written" ? [said(seen.original?.bytes ?? none)] : [],
    );
    expect(printed).toEqual(["DB_PASSWORD=***", "****\nnext DB_PASS", "WORD=*********\n"]);
    expect(after.stream("j", "s2").prints(2_000, cut, true)).toEqual([]);
  });
});

const none = Buffer.alloc(0);
