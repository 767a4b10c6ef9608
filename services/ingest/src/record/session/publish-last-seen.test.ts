import { Heard } from "@tapedeck/proto/tapedeck/v1/heard";
import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import { sourceName } from "@tapedeck/shared/source";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { expect, it, onTestFinished } from "vitest";
import { LastSeenPublisher } from "./publish-last-seen.ts";

const source = sourceName({ workspace: "default", developer: "alice", project: "host", upstream: "rkt" });
const at = timestampOfMs;

function stage() {
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const reports: Heard["collections"][] = [];
  const nats = {
    publish: (_: string, bytes?: unknown) => void reports.push(Heard.decode(bytes as Uint8Array).collections),
  };
  const publisher = new LastSeenPublisher({ nats, source, signal: over.signal });
  return {
    publisher,
    reports,
    took: (channel: string, result: Observation["result"], ms: number) =>
      publisher.read(channel, Observation.encode({ result }).finish(), at(ms))(),
  };
}

const late: Observation["result"] = { $case: "late", value: { kind: "" } };
const same: Observation["result"] = { $case: "same", value: true };

it("a list that is late is reported at once, and one that comes ends that", () => {
  const { reports, took } = stage();
  took("pods", same, 1_000);
  took("pods", late, 3_000);
  expect(reports.at(-1)).toMatchObject({ pods: { heard_at: at(1_000), late: true } });
  took("pods", { $case: "all", value: Buffer.alloc(0) }, 9_000);
  took("images", late, 9_001);
  expect(reports.at(-1)).toMatchObject({ pods: { heard_at: at(9_000), late: false } });
});

it("a list that is late before it was heard at all is reported without a time", () => {
  const { reports, took } = stage();
  took("pods", late, 3_000);
  expect(reports).toEqual([
    { pods: { heard_at: undefined, age_ms: expect.anything(), late: true, _unknownFields: {} } },
  ]);
});

it("an answer about one pod is no list", () => {
  const { reports, took } = stage();
  took("pods", { $case: "one", value: { id: "p", bytes: Buffer.alloc(0), code: 0, message: "" } }, 1_000);
  expect(reports).toEqual([]);
});

const hour = 3_600_000;

it.each([
  ["behind", -hour],
  ["right", 0],
  ["ahead", hour],
])("a list that waited in the spill has its age by the tap's clock, which is %s", (_what, offMs) => {
  const { publisher, reports, took } = stage();
  const tapNow = Date.now() + offMs;
  publisher.sent(at(tapNow));
  took("pods", same, tapNow - 90_000);
  took("images", same, tapNow);
  took("images", late, tapNow);
  const ageMs = (name: string) => Number(reports.at(-1)?.[name]?.age_ms);
  expect(ageMs("pods")).toBeGreaterThanOrEqual(90_000);
  expect(ageMs("pods")).toBeLessThan(hour / 2);
  expect(ageMs("images")).toBeLessThan(hour / 2);
});

it("a list of a tap that does not say when it sends counts from its arrival", () => {
  const { reports, took } = stage();
  took("pods", same, Date.now() - hour);
  expect(Number(reports.at(-1)?.pods?.age_ms)).toBeLessThan(hour / 2);
});

it("a list that is not polled any more after another connection is not reported", () => {
  const { publisher, reports, took } = stage();
  took("pods", same, 1_000);
  took("images", same, 1_000);
  publisher.connected();
  took("pods", late, 2_000);
  expect(Object.keys(reports.at(-1) ?? {})).toEqual(["pods"]);
});
