import { describe, expect, it } from "vitest";
import { job, lines, play } from "./jobs-play.ts";

describe("jobs", () => {
  it("tells one life, step by step", () => {
    const { list } = play();
    expect(list(1_000)).toBe("");
    expect(list(1_100, job("j", { state: "QUEUED", command: "up" }))).toBe("queued");
    expect(list(1_200, job("j", { state: "WAITING", command: "up", assigned: 1_150 }))).toBe("assigned1");
    expect(list(1_300, job("j", { state: "RUNNING", command: "up", assigned: 1_150, acked: 1_250 }))).toBe(
      "started up>",
    );
    const done = { state: "SUCCESS", command: "up", assigned: 1_150, acked: 1_250, completed: 1_350 } as const;
    expect(list(1_400, job("j", { ...done, result: { run: { run_result: true } } }))).toBe("succeeded up=SUCCEEDED");
  });

  it("tells output once", () => {
    const desk = play();
    const running = job("j", { state: "RUNNING", command: "up", assigned: 1_100, acked: 1_200 });
    desk.list(1_300, running);
    const live = desk.stream("j");
    live.state(1_310, running);
    expect(live.prints(1_320, lines(0, 10))).toBe("0-9");
    const done = job("j", { state: "SUCCESS", command: "up", assigned: 1_100, acked: 1_200, completed: 1_400 });
    expect(live.state(1_400, done)).toBe("succeeded=UNKNOWN (up=UNKNOWN)");
    expect(live.complete(1_410)).toBe("");
    const again = desk.stream("j");
    again.state(1_420, done);
    expect(again.prints(1_430, lines(0, 20), true)).toBe("10-19");
    expect(again.complete(1_440)).toBe("whole");
  });
});
