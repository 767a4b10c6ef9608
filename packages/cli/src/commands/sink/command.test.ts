import { expect, it } from "vitest";
import { tailCommand } from "../tail/command.ts";
import { waitCommand } from "../wait/command.ts";
import { sinkCommand } from "./command.ts";

/** What the option is parsed to, or the error that the command prints. */
function parsed(words: readonly string[], option: "start" | "to" | "after"): string {
  const [name = "", ...rest] = words;
  const all = [tailCommand(), waitCommand(), ...sinkCommand().commands];
  const command = all.find((one) => one.name() === name);
  let printed = "";
  command
    ?.action(() => {})
    .exitOverride()
    .configureOutput({ writeErr: (text) => (printed += text) });
  try {
    command?.parse(rest, { from: "user" });
    return String(command?.opts()[option]);
  } catch {
    return printed;
  }
}

const add = (...flags: readonly string[]) => parsed(["add", "ci", "https://hooks.example/", ...flags], "start");
const rewind = (to: string) => parsed(["rewind", "ci", "--to", to], "to");

it("a sink begins at the times that other commands take", () => {
  const minutesAgo = (time: string) => (Date.now() - Date.parse(time)) / 60_000;
  expect(minutesAgo(add("--start", "10m"))).toBeCloseTo(10, 0);
  expect(minutesAgo(rewind("10m"))).toBeCloseTo(10, 0);
  const midnight = new Date(new Date().setHours(0, 0, 0, 0));
  midnight.setDate(midnight.getDate() - 1);
  expect(new Date(rewind("yesterday"))).toEqual(midnight);
  expect(rewind("2026-01-31T12:00:00Z")).toBe("2026-01-31T12:00:00.000Z");
  for (const text of ["start", "now", "383600-t3k9x2"])
    expect([add("--start", text), rewind(text)]).toEqual([text, text]);
  expect(add()).toBe("now");
  expect(minutesAgo(parsed(["tail", "--after", "10m"], "after"))).toBeCloseTo(10, 0);
  expect(minutesAgo(parsed(["wait", "--for", "loop.failed", "--after", "10m"], "after"))).toBeCloseTo(10, 0);
});

it("an error about such a time names the option, the value and examples", () => {
  const lunch = /argument 'lunch' is invalid\. Expected start, now, a position, "10m", .*"yesterday"/;
  expect(add("--start", "lunch")).toMatch(/option '--start <start>'/);
  expect(rewind("lunch")).toMatch(/option '--to <start>'/);
  for (const error of [add("--start", "lunch"), rewind("lunch")]) expect(error).toMatch(lunch);
  const future = new Date(Date.now() + 3_600_000).toISOString();
  for (const error of [add("--start", future), rewind(future)]) expect(error).toContain("That is in the future");
});
