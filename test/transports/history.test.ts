import { eventPosition } from "@tapedeck/shared/testing/positions";
import { describe, expect, it } from "vitest";
import { type Due, wrongWith } from "./history.ts";
import type { Message } from "./transport.ts";

const due: readonly Due[] = [1, 3, 4, 7].map((seq) => ({ seq, id: `e${seq}` }));

const event = (seq: number, id = `e${seq}`): Message => ({
  type: "event",
  position: eventPosition("abc", seq),
  event: { id, kind: "build.started", source: "acme/alice/shop/skaffold" },
});
const mark = (seq: number): Message => ({ type: "bookmark", position: eventPosition("abc", seq) });

describe("the history checker", () => {
  it("accepts the due events in order, once each, with marks between them", () => {
    expect(wrongWith([event(1), mark(2), event(3), event(4), mark(6), mark(6), event(7), mark(9)], due)).toEqual([]);
  });

  it.each([
    ["one is missing", [event(1), event(4), event(7)], "e3 at 3 is missing"],
    ["one came twice", [event(1), event(3), event(3), event(4), event(7)], "e3 at 1300-abc came twice"],
    [
      "two are in the wrong order",
      [event(1), event(4), event(3), event(7)],
      "e3 at 1300-abc came after e4 at 1400-abc",
    ],
    [
      "one is not for this reader",
      [event(1), event(2), event(3), event(4), event(7)],
      "e2 at 1200-abc is not for this reader",
    ],
    [
      "a bookmark ran ahead",
      [event(1), mark(3), event(3), event(4), event(7)],
      "e3 at 1300-abc came after bookmark at 1300-abc",
    ],
    [
      "a mark goes back",
      [event(1), event(3), mark(2), event(4), event(7)],
      "bookmark at 1200-abc is behind e3 at 1300-abc",
    ],
    ["a position is another's", [event(1), event(3), event(5, "e4"), event(7)], "e4 at 1500-abc stands at 4"],
  ])("detects that %s", (_, received, expected) => {
    expect(wrongWith(received, due)).toContain(expected);
  });
});
