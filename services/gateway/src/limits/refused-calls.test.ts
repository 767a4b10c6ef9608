import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { until } from "@tapedeck/shared/testing/until";
import { pino } from "pino";
import { expect, it } from "vitest";
import { RefusedCalls } from "./refused-calls.ts";

type Line = { readonly who?: string; readonly source?: string; readonly msg: string; readonly leftOut?: number };

function auditLog(windowMs: number) {
  const lines: Line[] = [];
  const logger = pino({ level: "warn" }, { write: (line: string) => lines.push(JSON.parse(line) as Line) });
  const calls = new RefusedCalls(logger, { perCaller: 3, all: 5, windowMs, textLength: 200 });
  const refuse = (who: string, source = "alice/shop") => {
    const error = new TapedeckError("unknown_source", `there is no source ${source}`);
    calls.write({ who, workspace: "default", source, method: "/proto.SkaffoldService/Execute", error });
  };
  return { lines, refuse };
}

it("a caller has so many lines, whatever its port, and all of them have", () => {
  const { lines, refuse } = auditLog(60_000);
  for (let port = 1; port <= 1_000; port += 1) refuse(`127.0.0.1:${port}`);
  expect(lines).toHaveLength(3);
  refuse("192.0.2.7:1");
  expect(lines.at(-1)?.who).toBe("192.0.2.7:1");
  for (let host = 1; host < 100; host += 1) refuse(`192.0.2.${host}:1`);
  expect(lines).toHaveLength(5);
});

it("what is left out is counted when the window ends, and the next one begins", async () => {
  const { lines, refuse } = auditLog(50);
  for (let count = 0; count < 10; count += 1) refuse("ci");
  await until(() => lines.length > 3, { message: "the line at the end" });
  expect(lines.at(-1)).toMatchObject({
    audit: "control refused",
    leftOut: 7,
    msg: "7 more control calls were refused",
  });
  refuse("ci");
  expect(lines.at(-1)).toMatchObject({ who: "ci" });
});

it("a text of a caller's is cut, not through a character", () => {
  const { lines, refuse } = auditLog(60_000);
  refuse("ci", "\u{1F600}".repeat(4_000));
  const [line] = lines;
  expect([line?.source?.length, line?.msg.length].every((length = 0) => length <= 201)).toBe(true);
  expect(line?.source?.isWellFormed() && line.msg.isWellFormed()).toBe(true);
});
