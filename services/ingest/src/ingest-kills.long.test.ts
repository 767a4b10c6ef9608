import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { bytesOf, framesOf, holes, openLogReader, skaffoldSource } from "./testing/ingest-harness.ts";

const main = fileURLToPath(new URL("main.ts", import.meta.url));

type Harness = {
  readonly developer: string;
  readonly address: string;
  readonly natsUrl: string;
  readonly folder: string;
};

/** Ingest in a process of its own; resolves when it is ready. */
async function forkIngest({ developer, address, natsUrl, folder }: Harness): Promise<ChildProcess> {
  const child = fork(main, {
    stdio: ["ignore", "ignore", process.env.TAPEDECK_TEST_LOG === undefined ? "ignore" : "inherit", "ipc"],
    env: {
      ...process.env,
      TAPEDECK_NATS_URL: natsUrl,
      TAPEDECK_INGEST_GRPC_PORT: "0",
      TAPEDECK_INGEST_HEALTH_PORT: "0",
      TAPEDECK_INGEST_SPILL_DIR: folder,
      TAPEDECK_SOURCES: JSON.stringify([{ developer, project: "shop", address }]),
    },
  });
  const [message] = (await once(child, "message")) as [{ readonly type: string }];
  expect(message.type).toBe("ready");
  return child;
}

/** What a client can see of the upstream's own channels, sessions aside. */
function seen(events: readonly Event[], channel: string) {
  return events
    .filter((event) => event.channel === channel)
    .map(({ id: _id, session: _session, observed_at: _at, ...event }) => event);
}

it("kills of ingest at any moment leave the log as it would be without", async () => {
  const recording = loadRecording(`${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`);
  await using nats = await startTestNats();
  await using logReader = await openLogReader(nats.url);
  await using tidy = await temporaryFolder();
  const harness = (developer: string, address: string) => ({
    developer,
    address,
    natsUrl: nats.url,
    folder: tidy.folder,
  });
  const recorded = (developer: string) => logReader.events(skaffoldSource(developer));
  const frames = async (developer: string) => {
    const events = await recorded(developer);
    return framesOf(events, "v1").length + framesOf(events, "v2").length;
  };
  const complete = (developer: string) =>
    until(
      async () => {
        const events = await recorded(developer);
        return (
          framesOf(events, "v1").length === recording.messages.v1.length &&
          framesOf(events, "v2").length === recording.messages.v2.length
        );
      },
      { message: "all to be recorded" },
    );

  {
    await using fake = await startFakeSkaffold({ recording });
    const child = await forkIngest(harness("calm", fake.address));
    await fake.play();
    await complete("calm");
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  // The real Skaffold may hang for ever when a client leaves during its replay, and so may the fake. This test is not
  // about that.
  await using fake = await startFakeSkaffold({ recording, leavingInReplayHangs: false });
  let child = await forkIngest(harness("wild", fake.address));
  const all = recording.messages.v1.length;
  // Prime, so that the shares below are all different.
  const rounds = 23;
  for (let round = 1; round <= rounds; round++) {
    const before = await frames("wild");
    const played = fake.playUntil({ v1: Math.floor((all * round) / rounds) });
    // From "at once" to "when all is there", so that it dies connecting, while it sorts the replay, or while it
    // publishes.
    const share = ((round * 3) % rounds) / (rounds - 1);
    if (share > 0) await played;
    const more = Math.ceil(share * (fake.played.v1 + fake.played.v2 - before));
    await until(async () => (await frames("wild")) >= before + more, { message: `${more} more frames` });
    child.kill("SIGKILL");
    await once(child, "exit");
    child = await forkIngest(harness("wild", fake.address));
  }
  await fake.play();
  await complete("wild");
  child.kill("SIGTERM");
  await once(child, "exit");

  const [calm, wild] = [await recorded("calm"), await recorded("wild")];
  expect(holes(wild)).toEqual([]);
  expect(framesOf(wild, "v1")).toEqual(framesOf(calm, "v1"));
  for (const channel of ["v1", "v2"]) {
    const asOther = seen(wild, channel).map((event) => ({ ...event, source: skaffoldSource("calm") }));
    expect(asOther).toEqual(seen(calm, channel));
  }
  expect(wild.filter(({ kind }) => kind === "session.started")).toHaveLength(1);
  expect(bytesOf(recording, "v1")).toHaveLength(framesOf(wild, "v1").length);
});
