import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { OtherProcessDetector } from "./other-process.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const lastSeenAt = 1_000;
const long = 60_000;

it.each<{ title: string; said: readonly number[]; isOther: boolean }>([
  { title: "sends nothing", said: [], isOther: false },
  { title: "repeats what was heard", said: [lastSeenAt], isOther: false },
  { title: "repeats something older", said: [900], isOther: false },
  { title: "repeats it after something newer", said: [1_200, 1_100, 900], isOther: false },
  { title: "sends a message without a time", said: [1_200, 0], isOther: false },
  { title: "sends only newer messages", said: [1_200, 1_100, 1_300], isOther: true },
])("a process that $title: other process $isOther", ({ said, isOther }) => {
  const onOther = vi.fn();
  const detector = new OtherProcessDetector(lastSeenAt, onOther);
  for (const at of said) {
    vi.advanceTimersByTime(300);
    detector.messageAt(at);
  }
  vi.advanceTimersByTime(long);
  for (const at of said) detector.messageAt(at);
  expect(onOther).toHaveBeenCalledTimes(isOther ? 1 : 0);
  expect(vi.getTimerCount()).toBe(0);
});

it("nothing is concluded before a second has passed, nor once it has been stopped", () => {
  const onOther = vi.fn();
  const detector = new OtherProcessDetector(lastSeenAt, onOther);
  detector.messageAt(2_000);
  vi.advanceTimersByTime(999);
  detector.stop();
  detector.messageAt(2_000);
  vi.advanceTimersByTime(long);
  expect(onOther).not.toHaveBeenCalled();
});
