import { recordings } from "@tapedeck/fakes/recordings";
import { madeUpRecording, runningPod } from "@tapedeck/fakes/rkt/host";
import { loadRecording } from "@tapedeck/fakes/rkt/recording";
import { type FakeRkt, startFakeRkt } from "@tapedeck/fakes/rkt/server";
import { GetLogsRequest, GetLogsResponse, type Pod, PodState } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Observation_Text } from "@tapedeck/proto/tapedeck/v1/observation";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it } from "vitest";
import type { PolledConnection } from "../polling/connection.ts";
import { dial } from "../polling/dial.ts";
import type { PollResult } from "../polling/poll-result.ts";
import { rktServer } from "./connection.ts";
import { TextFollower, type TextPace } from "./follow-texts.ts";
import { HostOutput } from "./host-output.ts";

const recording = loadRecording(`${recordings.rkt}/08-logs-journal`);
const pod = "91d2f685-a122-492d-8bbe-c843c3cdb304";
const never = 1_000_000;
const when = (message: string, condition: () => unknown) => until(() => Boolean(condition()), { message });

/** The pod of the recording, with its apps. */
function listed(state: PodState, apps = ["web", "side"], id = pod): Pod {
  const [like] = runningPod(1).apps;
  return { ...runningPod(1), id, state, apps: apps.flatMap((name) => (like ? [{ ...like, name }] : [])) };
}

const running = listed(PodState.POD_STATE_RUNNING);
const exited = listed(PodState.POD_STATE_EXITED);

async function following(fake: FakeRkt, { memory = new HostOutput(), pace = {} as Partial<TextPace> } = {}) {
  const leave = new AbortController();
  const dialled = await dial(rktServer(fake.address), {
    address: fake.address,
    timeoutMs: 10_000,
    signal: leave.signal,
  });
  if (dialled.there !== "server") throw new Error("nobody is there");
  const { connection } = dialled;
  const seen: PollResult[] = [];
  const texts = new TextFollower({
    connection,
    memory,
    emit: (one) => void seen.push(one),
    pace: { quiet: never, firstRetry: never, podDelay: 0, forgetMissing: never, ...pace },
  });
  const all = () => seen.flatMap((one): Observation_Text[] => (one.$case === "text" ? [one.value] : []));
  return {
    update: (pods: readonly Pod[]) => texts.update(pods),
    close: () => texts.close(),
    connection,
    memory,
    seen,
    all,
    of: (app: string) =>
      all()
        .filter((text) => text.app === app)
        .flatMap(({ bytes }) => GetLogsResponse.decode(bytes).lines),
    [Symbol.asyncDispose]: async () => {
      texts.close();
      leave.abort();
      await connection.over;
    },
  };
}

function requests(fake: FakeRkt) {
  const calls = fake.newestCalls.filter(({ rpc }) => rpc === "GetLogs");
  return calls.map(({ request }) => {
    const { pod_id, app_name, follow, since_time } = GetLogsRequest.decode(request);
    expect([pod_id, follow]).toEqual([pod, true]);
    return [app_name, since_time];
  });
}

const start = 1_795_188_504n;

describe("a pod that runs", () => {
  it("is followed app by app and as a whole, once", async () => {
    await using fake = await startFakeRkt({ recording });
    await using tapped = await following(fake);
    for (let observation = 0; observation < 3; observation++) tapped.update([running]);
    await when("the lines", () => tapped.of("").length > 10 && tapped.of("web").length > 5);
    tapped.update([running]);
    expect(requests(fake).toSorted()).toEqual([
      ["", 0n],
      ["side", 0n],
      ["web", 0n],
    ]);
    expect(tapped.of("")[0]).toBe("2026-11-20 15:28:24.368852 +0000 UTC MESSAGE=side starting");
    expect(tapped.of("web").every((line) => line.includes("MESSAGE=web "))).toBe(true);
    expect(tapped.all().every((text) => text.pod === pod && !text.reopened)).toBe(true);
  });

  it("says what it says a while after its apps", async () => {
    await using fake = await startFakeRkt({ recording });
    await using tapped = await following(fake, { pace: { podDelay: 3_000 } });
    tapped.update([running]);
    await when("the pod's lines", () => tapped.of("").length > 10);
    const firstOfPod = tapped.all().findIndex(({ app }) => app === "");
    expect(tapped.all().findLastIndex(({ app }) => app !== "")).toBeLessThan(firstOfPod);
  });

  it("may get another app", async () => {
    await using fake = await startFakeRkt({ recording });
    await using tapped = await following(fake);
    tapped.update([listed(PodState.POD_STATE_RUNNING, ["web"])]);
    tapped.update([running]);
    await when("its lines", () => tapped.of("side").length > 3);
    expect(fake.calls.GetLogs.made).toBe(3);
  });
});

describe("a pod that has ended", () => {
  it("is left when it has been silent, and not followed again", async () => {
    await using fake = await startFakeRkt({ recording });
    await using tapped = await following(fake, { pace: { quiet: 20 } });
    tapped.update([running]);
    await when("streams", () => fake.calls.GetLogs.inFlight === 3 && tapped.of("").length > 10);
    await when("them to be closed", () => {
      tapped.update([exited]);
      return fake.calls.GetLogs.inFlight === 0;
    });
    tapped.update([exited]);
    tapped.update([]);
    expect(fake.calls.GetLogs.made).toBe(3);
  });

  it("is left when it is gone, and forgotten", async () => {
    await using fake = await startFakeRkt({ recording });
    await using tapped = await following(fake, { pace: { quiet: 20, forgetMissing: 40 } });
    tapped.update([running]);
    await when("streams", () => fake.calls.GetLogs.inFlight === 3);
    await when("it to be forgotten", () => {
      tapped.update([]);
      return tapped.memory.texts.size === 0;
    });
    await when("them to be closed", () => fake.calls.GetLogs.inFlight === 0);
  });

  it("is followed all the same when it ran unseen, but not when it had ended before we came", async () => {
    await using fake = await startFakeRkt({ recording });
    await using tapped = await following(fake);
    tapped.update([listed(PodState.POD_STATE_EXITED, ["web"], "a82ad1bd-1111-4111-8111-111111111111")]);
    expect(tapped.memory.texts.size).toBe(0);
    tapped.update([exited]);
    await when("its lines", () => tapped.of("web").length > 0);
  });
});

describe("another connection", () => {
  it("goes on where the one before ended, with the apps as far back as the pod", async () => {
    await using fake = await startFakeRkt({ recording });
    const memory = new HostOutput();
    {
      await using first = await following(fake, { memory, pace: { podDelay: never } });
      first.update([running]);
      await when("lines", () => first.of("web").length > 5 && first.of("side").length > 3);
      await isAnswered(first.connection);
      expect(first.of("")).toEqual([]);
      // What the pod said was held back: it is given when the connection ends.
      first.close();
      expect(first.of("").length).toBeGreaterThan(10);
    }
    // The pod's stream looks as if it were behind.
    const behind = memory.texts.get(`${pod}/`);
    if (behind !== undefined) behind.second = start + 2n;
    const seconds = new Map([...memory.texts].map(([key, { second }]) => [key.split("/")[1], second]));
    expect(seconds.get("web")).toBeGreaterThan(start + 2n);
    await using next = await following(fake, { memory });
    next.update([exited]);
    await when("lines again", () => next.of("").length > 0 && next.of("web").length > 0);
    expect(requests(fake).slice(3).toSorted()).toEqual(["", "side", "web"].map((app) => [app, start + 2n]));
    const flags = next.all().filter(({ app }) => app === "web");
    expect(flags.map(({ reopened }) => reopened)).toEqual(flags.map((_, index) => index === 0));
  });
});

describe("texts that can't be had", () => {
  it("are given up, with one word, when rkt was built without them", async () => {
    await using fake = await startFakeRkt({ recording: madeUpRecording({ pods: [] }) });
    await using tapped = await following(fake, { pace: { firstRetry: 0 } });
    tapped.update([running]);
    await when("the refusal", () => tapped.seen.length > 0);
    for (let observation = 0; observation < 5; observation++) tapped.update([running]);
    await when("no stream", () => fake.calls.GetLogs.inFlight === 0);
    expect(tapped.seen).toEqual([
      { $case: "failed", value: { code: 2, message: "rkt built without logging support" } },
    ]);
    expect(fake.calls.GetLogs.made).toBe(3);
  });

  it("are asked for some times of a pod without a journal, which it may get when it has started", async () => {
    const error = { code: 2, details: `logging unsupported for pod "${pod}"` };
    await using fake = await startFakeRkt({ recording, lie: ({ rpc }) => (rpc === "GetLogs" ? { error } : undefined) });
    await using tapped = await following(fake, { pace: { firstRetry: 1 } });
    const pods = [listed(PodState.POD_STATE_RUNNING, [])];
    await when("five questions", () => {
      tapped.update(pods);
      return fake.calls.GetLogs.made === 5 && fake.calls.GetLogs.inFlight === 0;
    });
    await isAnswered(tapped.connection);
    for (let observation = 0; observation < 5; observation++) tapped.update(pods);
    await isAnswered(tapped.connection);
    expect(fake.calls.GetLogs.made).toBe(5);
    expect(tapped.seen).toEqual([]);
  });

  it("are asked for again after an error, from where they were", async () => {
    let fails = true;
    const error = { code: 2, details: "unable to resolve UUID" };
    await using fake = await startFakeRkt({
      recording,
      lie: ({ rpc }) => (rpc === "GetLogs" && fails ? { error } : undefined),
    });
    await using tapped = await following(fake, { pace: { firstRetry: 1 } });
    tapped.update([running]);
    await when("errors", () => fake.calls.GetLogs.made === 3);
    fails = false;
    await when("lines", () => {
      tapped.update([running]);
      return tapped.of("web").length > 0;
    });
  });
});

/** Whatever was on its way to us before is here then. */
async function isAnswered(connection: PolledConnection): Promise<void> {
  await connection.call("/v1alpha.PublicAPI/GetInfo", Buffer.alloc(0), 10_000);
}
