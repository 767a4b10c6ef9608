import { GetJobStreamResponse, type Job, Job_State, ListJobsResponse } from "@tapedeck/proto/vagrant/vagrant";
import type { SourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { ulid } from "ulid";
import { expect, it } from "vitest";
import { normalizer as vagrant } from "../../normalize/vagrant/normalizer.ts";
import { job, lines } from "../../normalize/vagrant/testing/jobs-play.ts";
import { type Fate, fakeLog } from "../testing/fake-log.ts";
import { pollingTap } from "../testing/polling-tap.ts";

// A Vagrant server is replaced by another one at the same address, and the recorder is killed meanwhile.

const source = "default/h1/shop/vagrant" as SourceName;
const ids = { over: ulid(1_000), left: ulid(1_001), shared: ulid(1_002) };
const over = job(ids.over, { state: "SUCCESS", assigned: 1_100, acked: 1_200, completed: 1_900, result: { init: {} } });
const running = (id: string) => job(id, { state: "RUNNING", command: "up", assigned: 1_100, acked: 1_200 });
const list = (...jobs: readonly Job[]) => Buffer.from(ListJobsResponse.encode({ jobs: [...jobs] }).finish());

/** What is recorded when the log takes so many publishes, and then no more until the recorder was killed. */
async function recorded(publishes: number): Promise<readonly string[]> {
  let taken = 0;
  let isStuck = false;
  let isKilled = false;
  const log = fakeLog((): Fate => {
    if (!isKilled && taken >= publishes) {
      isStuck = true;
      return { lands: "never", answers: false };
    }
    taken += 1;
    return { lands: "now", answers: true };
  });
  await using tap = pollingTap(log, { source, normalizer: vagrant });
  const stream = ulid(1_500);
  const streamed = (ms: number, event: GetJobStreamResponse["event"]) => {
    const bytes = Buffer.from(GetJobStreamResponse.encode({ event }).finish());
    return tap.see(ms, "C1", "jobs", { $case: "streamed", value: { job: ids.left, bytes, stream, before: 0n } });
  };
  const state = { previous: Job_State.UNKNOWN, current: Job_State.RUNNING, job: running(ids.left), canceling: false };
  // One push a step: what the recorder that is killed does not take must not keep the next one from being made.
  const dial = (ms: number, connection: string) => [
    () => tap.push(ms, connection, { $case: "dialled", value: { address: "h1:9701", channels: ["jobs"] } }),
    () => tap.push(ms, connection, { $case: "identified", value: { identity: "h1", version: "v1" } }),
  ];
  const version = { $case: "described", value: { channel: "version", state: Buffer.from("v1") } } as const;
  const steps = [
    ...dial(1_000, "C1"),
    () => tap.push(1_001, "C1", version),
    () => tap.observation(2_000, "C1", "jobs", list(over, running(ids.left), running(ids.shared))),
    () => streamed(2_001, { $case: "state", value: state }),
    () => streamed(2_002, { $case: "terminal", value: { events: [...lines(0, 3)], buffered: false } }),
    () => tap.lost(3_000, "C1"),
    ...dial(3_001, "C2"),
    () => tap.push(3_002, "C2", version),
    () => tap.observation(3_003, "C2", "jobs", list(running(ids.shared))),
    () => tap.observation(3_004, "C2", "jobs", list(running(ids.shared), job("later", { state: "QUEUED" }))),
  ];
  const left = steps.values();
  const go = async () => {
    for (const step of left) {
      // The recorder that was killed did not take it; the next one does.
      await step().catch(() => {});
      await until(async () => isStuck || (await tap.isSettled()), { message: "the step to be recorded" });
      if (isStuck) return;
    }
  };
  const going = go();
  let isDone = false;
  void going.then(() => {
    isDone = true;
  });
  await until(() => isStuck || isDone, { message: "the log to be stuck, or not to be" });
  if (isStuck) {
    isKilled = true;
    await tap.crash(1);
    await going;
    isStuck = false;
    await go();
  }
  await going;
  await tap.settled();
  const sessions = [...new Set(log.recorded().flatMap(({ event }) => event.session || []))];
  return log.recorded().flatMap(({ event: { session, kind, subject, detail } }) => {
    if (session === "" || kind.startsWith("upstream.")) return [];
    const output = detail?.$case === "gap" ? detail.value.output : undefined;
    const about = output ? `${output.job} from ${output.index}` : subject;
    const name = Object.entries(ids).reduce((text, [name, id]) => text.replace(id, name), about);
    return [`${sessions.indexOf(session) + 1}: ${kind} ${name}`.trim()];
  });
}

it("the same is recorded, once, and in the sessions that it belongs to, wherever the recorder is killed", async () => {
  const whole = await recorded(1_000);
  expect(whole.filter((reported) => /gap|lost|session\.(started|ended)/.test(reported))).toEqual([
    "1: session.started",
    "1: session.gap over from 0",
    "1: session.gap left from 3",
    "1: job.lost left",
    "1: session.gap shared from 0",
    "1: session.ended",
    "2: session.started",
  ]);
  for (let publishes = 1; publishes < 24; publishes++) {
    expect(await recorded(publishes), `after ${publishes}`).toEqual(whole);
  }
});
