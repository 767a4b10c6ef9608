import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { until } from "@tapedeck/shared/testing/until";
import { pino } from "pino";
import { expect, it } from "vitest";
import { RefusedCalls, type RefusedCallsBounds } from "./refused-calls.ts";

type Line = {
  readonly who?: string;
  readonly source?: string;
  readonly method?: string;
  readonly msg: string;
  readonly leftOut?: number;
};

/** `bounds`: undefined for the usual ones. */
function auditLogOf(bounds: RefusedCallsBounds | undefined) {
  const lines: Line[] = [];
  const logger = pino({ level: "warn" }, { write: (line: string) => lines.push(JSON.parse(line) as Line) });
  const calls = new RefusedCalls(logger, { bounds });
  const refuse = (who: string, source = "alice/shop", method = "/proto.SkaffoldService/Execute") => {
    const error = new TapedeckError("unknown_source", `there is no source ${source}`);
    calls.write({ who, kind: "address", workspace: "default", source, method, error });
  };
  return { lines, calls, refuse };
}

const auditLog = (windowMs: number) => auditLogOf({ perCaller: 3, all: 5, windowMs, textLength: 200 });

it("a caller has so many lines, whatever its port, and all of them have", () => {
  const { lines, refuse } = auditLog(60_000);
  for (let port = 1; port <= 1_000; port += 1) refuse(`127.0.0.1:${port}`);
  expect(lines).toHaveLength(3);
  refuse("192.0.2.7:1");
  expect(lines.at(-1)?.who).toBe("192.0.2.7:1");
  for (let host = 1; host < 100; host += 1) refuse(`192.0.2.${host}:1`);
  expect(lines).toHaveLength(5);
});

it("a token uses up no lines of others, whatever it is called", () => {
  const { lines, calls } = auditLog(60_000);
  const error = new TapedeckError("forbidden", "no");
  const call = { workspace: "acme", source: "", method: "/x", error };
  for (let times = 0; times < 4; times++) {
    for (const who of ["alice (sso.example)", "192.0.2.7"]) calls.write({ ...call, who, kind: "token", by: "0a" });
  }
  expect(lines).toHaveLength(3);
  calls.write({ ...call, who: "alice (sso.example)", kind: "person", by: "https://sso.example u-1" });
  calls.write({ ...call, who: "192.0.2.7", kind: "address" });
  expect(lines.slice(3)).toMatchObject([{ kind: "person" }, { kind: "address" }]);
});

it("calls that are left out are counted when the window ends, and the next one begins", async () => {
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

it("the limit of all callers begins anew with the window, too", async () => {
  const { lines, refuse } = auditLog(50);
  for (let caller = 0; caller < 10; caller += 1) refuse(`ci-${caller}`);
  await until(() => lines.at(-1)?.leftOut === 5, { message: "the line at the end" });
  for (let caller = 0; caller < 5; caller += 1) refuse(`ci-${caller}`);
  expect(lines.slice(6).map(({ who }) => who)).toEqual(["ci-0", "ci-1", "ci-2", "ci-3", "ci-4"]);
});

it("each text of a caller's is cut, not through a character", () => {
  const { lines, refuse } = auditLog(60_000);
  const long = "\u{1F600}".repeat(4_000);
  refuse(`x${long}`, long, `/${long}`);
  const [{ who, source, method, msg } = expect.fail()] = lines;
  for (const text of [who, source, method, msg]) {
    expect(text?.length).toBeGreaterThan(150);
    expect(text?.length).toBeLessThanOrEqual(201);
    expect(text?.isWellFormed()).toBe(true);
  }
});

it("nobody has to set the bounds: a minute has a few hundred short lines", () => {
  const { lines, refuse } = auditLogOf(undefined);
  for (let port = 1; port <= 1_000; port += 1) refuse(`127.0.0.1:${port}`, "x".repeat(10_000));
  expect(lines).toHaveLength(60);
  for (let host = 1; host < 250; host += 1) for (let call = 0; call < 10; call += 1) refuse(`192.0.2.${host}:1`);
  expect(lines).toHaveLength(600);
  expect(Buffer.byteLength(JSON.stringify(lines[0]))).toBeLessThan(1_000);
});
