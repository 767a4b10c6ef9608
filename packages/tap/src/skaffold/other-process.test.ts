import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { otherProcess } from "./other-process.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const heard = 1_000;
const long = 60_000;

test.each<{ title: string; said: readonly number[]; isOther: boolean }>([
  { title: "says nothing", said: [], isOther: false },
  { title: "repeats what was heard", said: [heard], isOther: false },
  { title: "repeats something older", said: [900], isOther: false },
  { title: "repeats it after something newer", said: [1_200, 1_100, 900], isOther: false },
  { title: "says what has no time", said: [1_200, 0], isOther: false },
  { title: "says only what is newer", said: [1_200, 1_100, 1_300], isOther: true },
])("who $title: other process $isOther", ({ said, isOther }) => {
  const told = vi.fn();
  const other = otherProcess(heard, told);
  for (const at of said) {
    vi.advanceTimersByTime(300);
    other.said(at);
  }
  vi.advanceTimersByTime(long);
  for (const at of said) other.said(at);
  expect(told).toHaveBeenCalledTimes(isOther ? 1 : 0);
  expect(vi.getTimerCount()).toBe(0);
});

test("nothing is concluded before a second has passed, nor once it has been stopped", () => {
  const told = vi.fn();
  const other = otherProcess(heard, told);
  other.said(2_000);
  vi.advanceTimersByTime(999);
  other.stop();
  other.said(2_000);
  vi.advanceTimersByTime(long);
  expect(told).not.toHaveBeenCalled();
});
