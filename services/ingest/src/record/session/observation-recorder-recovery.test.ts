import { GetInfoResponse, GetLogsResponse, type Image, type Pod } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { GetJobStreamResponse, ListJobsResponse } from "@tapedeck/proto/vagrant/vagrant";
import type { SourceName } from "@tapedeck/shared/source";
import { ulid } from "ulid";
import { expect, it } from "vitest";
import { normalizer as rkt } from "../../normalize/rkt/normalizer.ts";
import { image, listOfImages, listOfPods, pod } from "../../normalize/rkt/testing/host-play.ts";
import { normalizer as vagrant } from "../../normalize/vagrant/normalizer.ts";
import { job, lines } from "../../normalize/vagrant/testing/jobs-play.ts";
import { type FakeLog, fakeLog } from "../testing/fake-log.ts";
import { pollingTap } from "../testing/polling-tap.ts";

// Recorder, tap or clock fail between two observations of a rkt host.

const options = { source: "default/h1/host/rkt" as SourceName, normalizer: rkt };
const well = () => ({ lands: "now", answers: true }) as const;

const one = pod("p1", { state: "RUNNING" });
const two = pod("p2", { state: "RUNNING" });
const pods = (...listed: readonly Pod[]) => listOfPods(listed);
const images = (...listed: readonly Image[]) => listOfImages(listed);

const info = (rkt_version: string) =>
  Buffer.from(
    GetInfoResponse.encode({
      info: { rkt_version, appc_version: "", api_version: "", global_flags: undefined },
    }).finish(),
  );
const kinds = (log: FakeLog, channel: string) =>
  log.recorded().flatMap(({ event }) => (event.channel === channel ? [event.kind] : []));

it("all that is gone after a reconnect is held back by a recorder too that starts in between", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, options);
  await tap.dial(0, "C1", "/one");
  await tap.observation(10, "C1", "pods", pods(one));
  await tap.observation(11, "C1", "images", images(image("sha512-1")));
  await tap.lost(20, "C1");
  await tap.dial(30, "C2", "/one");
  await tap.observation(40, "C2", "pods", pods());
  await tap.observation(41, "C2", "images", images());
  await tap.settled();
  await tap.crash();
  for (const ms of [50, 60, 70]) {
    await tap.observation(ms, "C2", "pods", pods());
    await tap.observation(ms + 1, "C2", "images", images());
  }
  await tap.settled();
  expect([...kinds(log, "pods"), ...kinds(log, "images")]).toEqual(["inventory.described", "inventory.described"]);
  await tap.observation(80, "C2", "pods", pods(one, two));
  await tap.settled();
  expect(kinds(log, "pods")).toEqual(["inventory.described", "pod.prepared", "pod.started", "app.started"]);
});

it("an observation that is the same as one that the tap had to drop says nothing", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, options);
  await tap.dial(0, "C1", "/one");
  await tap.observation(10, "C1", "pods", pods(one, two));
  await tap.observation(20, "C1", "pods", pods(two));
  // At 30 both were there.
  const dropped = { channel: "pods", count: 1n, bytes: 500n, reason: "spill_full" };
  await tap.push(30, "C1", { $case: "dropped", value: dropped });
  await tap.see(40, "C1", "pods", { $case: "same", value: true });
  await tap.see(50, "C1", "pods", { $case: "same", value: true });
  await tap.observation(60, "C1", "pods", pods(one, two));
  await tap.settled();
  expect(kinds(log, "pods")).toEqual(["inventory.described"]);
});

it("an observation is recorded though the clock was set back after a recorder's start", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, options);
  await tap.dial(0, "C1", "/one");
  await tap.observation(10_000, "C1", "pods", pods());
  await tap.observation(20_000, "C1", "pods", pods(pod("p1", { state: "PREPARED" })));
  await tap.settled();
  await tap.crash(4);
  await tap.observation(5_000, "C1", "pods", pods(one));
  await tap.settled();
  expect(kinds(log, "pods")).toEqual(["inventory.described", "pod.prepared", "pod.started", "app.started"]);
});

it("all observations are recorded after a recorder's start though the tap's clock was a day ahead before", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, options);
  const dayMs = 24 * 3_600_000;
  await tap.dial(dayMs, "C1", "/one");
  await tap.push(dayMs, "C1", { $case: "described", value: { channel: "info", state: info("1.29.0") } });
  await tap.observation(dayMs + 10, "C1", "pods", pods());
  await tap.observation(dayMs + 20, "C1", "pods", pods(pod("p0", { state: "PREPARED" })));
  await tap.settled();
  // The clock is set right, and the recorder starts anew.
  await tap.crash();
  await tap.push(10, "C1", { $case: "described", value: { channel: "info", state: info("1.30.0") } });
  const prepared = Array.from({ length: 20 }, (_, i) => pod(`p${i + 1}`, { state: "PREPARED" }));
  for (const [i] of prepared.entries()) {
    await tap.observation(1_000 + i, "C1", "pods", pods(pod("p0", { state: "PREPARED" }), ...prepared.slice(0, i + 1)));
  }
  await tap.settled();
  expect(kinds(log, "pods")).toEqual(["inventory.described", ...Array.from({ length: 21 }, () => "pod.prepared")]);
  expect(kinds(log, "tapedeck").filter((kind) => kind === "session.described")).toHaveLength(2);
});

it("an observation that is pushed again with a later time than before is recorded once", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, options);
  await tap.dial(0, "C1", "/one");
  await tap.observation(10_000, "C1", "pods", pods(one));
  await tap.observation(9_000, "C1", "pods", pods(one, two));
  await tap.observation(8_000, "C1", "pods", pods(pod("p1", { state: "EXITED" }), two));
  await tap.settled();
  const before = kinds(log, "pods");
  await tap.crash(3);
  await tap.settled();
  expect(kinds(log, "pods")).toEqual(before);
});

it("an observation that can't be read is masked", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, options);
  await tap.dial(0, "C1", "/one");
  const bytes = Buffer.concat([Buffer.from([0xff, 0xff]), Buffer.from("DB_PASSWORD=hunter2hunter2\n")]);
  await tap.push(10, "C1", { $case: "frame", value: { channel: "pods", bytes, more: false } });
  await tap.settled();
  const event = log.recorded().at(-1)?.event;
  expect(event).toMatchObject({ kind: "upstream.unreadable", redacted: 1 });
  expect(event?.original?.bytes.toString("latin1")).toMatch(/DB_PASSWORD=\*{14}\n$/);
});

it("text that has expired does not come back with the next connection", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, { ...options, textTtl: 3_600 });
  const write = (ms: number, connection: string, app: string, text: string) => {
    const bytes = Buffer.from(GetLogsResponse.encode({ lines: [text] }).finish());
    return tap.see(ms, connection, "logs", { $case: "text", value: { pod: "p1", app, bytes, reopened: false } });
  };
  const now = new Date().toISOString().replace("T", " ").replace("Z", " +0000 UTC");
  await tap.dial(0, "C1", "/one");
  await tap.lost(10, "C1");
  await tap.dial(20, "C2", "/one");
  await write(30, "C2", "web", "2026-01-20 15:28:29.36926 +0000 UTC MESSAGE=old");
  await write(31, "C2", "api", `${now} MESSAGE=new`);
  await tap.settled();
  const lines = log
    .recorded()
    .flatMap(({ event: { detail } }) => (detail?.$case === "text" ? [detail.value.text] : []));
  expect(lines).toEqual([`${now} MESSAGE=new`]);
});

it("output of a job that runs on is not recorded anew when the log has dropped what was recorded of it", async () => {
  const made = fakeLog(well);
  let hasExpired = false;
  async function* history(...args: Parameters<FakeLog["reader"]["history"]>) {
    for await (const recorded of made.reader.history(...args)) {
      if (!hasExpired || recorded.event.kind !== "terminal.written") yield recorded;
    }
  }
  const log: FakeLog = { ...made, reader: { ...made.reader, history } };
  const source = "default/dana/shop/vagrant" as SourceName;
  await using tap = pollingTap(log, { source, normalizer: vagrant, textTtl: 100 });
  const running = job("j", { state: "RUNNING", command: "up", assigned: 900, acked: 1_000 });
  const list = ListJobsResponse.encode({ jobs: [running] }).finish();
  const prints = (ms: number, stream: string, events: ReturnType<typeof lines>) => {
    const event = { $case: "terminal" as const, value: { events: [...events], buffered: true } };
    const bytes = Buffer.from(GetJobStreamResponse.encode({ event }).finish());
    return tap.see(ms, "C1", "jobs", { $case: "streamed", value: { job: "j", bytes, stream, before: 0n } });
  };
  await tap.dial(0, "C1", "127.0.0.1:1");
  await tap.observation(1_000, "C1", "jobs", list);
  await prints(1_100, ulid(1_050), lines(0, 10));
  await tap.see(60_000, "C1", "jobs", { $case: "same", value: true });
  await tap.settled();
  hasExpired = true;
  await tap.crash();
  await tap.observation(200_000, "C1", "jobs", list);
  await prints(200_100, ulid(200_050), lines(0, 12));
  await tap.settled();
  const written = log
    .recorded()
    .flatMap(({ event: { detail } }) => (detail?.$case === "text" ? [Number(detail.value.output?.index)] : []));
  expect(written).toEqual(Array.from({ length: 12 }, (_, index) => index));
});

it("a version of megabytes is cut to what the log takes", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, options);
  await tap.push(0, "C1", { $case: "dialled", value: { address: "h1:15441", channels: ["pods"] } });
  await tap.push(1, "C1", { $case: "identified", value: { identity: "/one", version: "1".repeat(9 << 20) } });
  await tap.settled();
  for (const { written } of log.stored) expect(written.event.byteLength).toBeLessThan(20_000);
});

it("a data directory that comes back is the same session, however long ago that began", async () => {
  const made = fakeLog(well);
  // Only the newest session counts as recent.
  const firstSince = async () => made.recorded().findLast(({ event }) => event.kind === "session.started")?.offset;
  const log: FakeLog = { ...made, reader: { ...made.reader, firstSince } };
  await using tap = pollingTap(log, options);
  await tap.dial(0, "C1", "/one");
  await tap.observation(10, "C1", "pods", pods(one));
  await tap.dial(20, "C2", "/two");
  await tap.observation(30, "C2", "pods", pods());
  await tap.settled();
  await tap.crash();
  await tap.dial(40, "C3", "/one");
  await tap.observation(50, "C3", "pods", pods(one, two));
  await tap.settled();
  expect(kinds(log, "tapedeck").filter((kind) => kind === "session.started")).toHaveLength(2);
  expect(kinds(log, "pods").slice(2)).toEqual(["pod.prepared", "pod.started", "app.started"]);
});
