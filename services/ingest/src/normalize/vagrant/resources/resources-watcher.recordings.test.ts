import { loadRecording } from "@tapedeck/fakes/vagrant/recording";
import { type FakeVagrant, startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { Operation_PhysicalState, type Target, UpsertTargetRequest } from "@tapedeck/proto/vagrant/vagrant";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { resourceMethods } from "@tapedeck/tap/vagrant/methods";
import { describe, expect, it } from "vitest";
import { type ObservationOutcome, outcomesOf } from "../../inventory/observing.ts";
import { observing } from "../observing.ts";
import { detailsOf, framesOf } from "../testing/resources-play.ts";

const recording = loadRecording(
  new URL("../../../../../../packages/fakes/recordings/vagrant/samples/up.jsonl", import.meta.url).pathname,
);
const runner = "01M7WSXQZS1K6ZCYSAATXY98MQ";
const upJob = "01M7WSXR6NFM73VJ0F879K4ZNP";

/** Polls the jobs and all resources that the server has, as the tap does. */
function observingAt(fake: FakeVagrant): () => readonly ObservationOutcome[] {
  const watcher = observing.watch({ mask: observing.mask, settings: {} });
  const call = (path: string, request: Buffer) => fake.call(path.split("/").at(-1) ?? "", request);
  let ms = 0;
  return () => {
    ms += 1_000;
    const jobs = call("_ListJobs", Buffer.alloc(0));
    // An observation gives its outcomes while they are read.
    outcomesOf(watcher.observe("jobs", { result: { $case: "all", value: jobs } }, timestampOfMs(ms)));
    const kinds = resourceMethods.map(({ kind, list, get, resourceIn }) => {
      const ids = list ? list.ids(call(list.path, Buffer.alloc(0))) : [runner];
      const entries = ids.map((id) => ({ id, bytes: resourceIn(call(get.path, get.request(id))) ?? Buffer.alloc(0) }));
      return { kind, same: false, entries, missing: [] };
    });
    return outcomesOf(
      watcher.observe("resources", { result: { $case: "resources", value: { kinds } } }, timestampOfMs(ms)),
    );
  };
}

const summaries = (record: readonly ObservationOutcome[]) =>
  framesOf(record).map(({ facts: [{ summary }] }) => summary);

describe("a `vagrant up` on a real server", () => {
  it("emits what happened to its resources, and which command did it", async () => {
    await using fake = await startFakeVagrant();
    const playback = fake.playSample(recording);
    const observation = observingAt(fake);
    // The runner says what it is, and then it can be polled.
    playback.to(6);
    const record = [...observation()];
    while (playback.next() !== undefined) record.push(...observation());
    expect(summaries(record)).toEqual([
      "the server has 0 targets, 0 projects, 0 bases, 0 boxes, 1 runner",
      "basis default was added",
      "project shop was added",
      "basis default changed: projects",
      "web1 was added",
      "project shop changed: targets",
      "web2 was added",
      "project shop changed: targets",
      "box hashicorp/bionic64 1.0.282 (virtualbox) was added",
      "web1 is not created",
      "web1 is destroyed or powered off",
      "web1 is running",
      "web2 is not created",
      "web2 is destroyed or powered off",
      "web2 is running",
    ]);
    const changes = detailsOf(record).filter((detail) => "last_state" in detail);
    expect(changes).toMatchObject([
      { name: "web1", last_state: "UNKNOWN", changed: ["state", "record", "provider"], job: upJob },
      { name: "web1", last_state: "NOT_CREATED", changed: ["state"], job: upJob },
      { name: "web1", last_state: "DESTROYED", changed: ["state"], job: upJob },
      { name: "web2", last_state: "UNKNOWN", changed: ["state", "record", "provider"], job: upJob },
      { name: "web2", last_state: "NOT_CREATED", changed: ["state"], job: upJob },
      { name: "web2", last_state: "DESTROYED", changed: ["state"], job: upJob },
    ]);
  });

  it("emits that a target was scrubbed, and which one it was that comes in its place", async () => {
    await using fake = await startFakeVagrant();
    fake.playSample(recording).all();
    const observation = observingAt(fake);
    observation();
    const web2 = [...fake.database.targets.values()].find(({ name }) => name === "web2");
    const { resource_id, project } = web2 ?? {};
    const upsert = (more: Partial<Target>) => {
      const request = UpsertTargetRequest.fromPartial({ target: { name: "web2", project, ...more } as Target });
      fake.call("UpsertTarget", Buffer.from(UpsertTargetRequest.encode(request).finish()));
    };
    upsert({ resource_id: resource_id ?? "", state: Operation_PhysicalState.DESTROYED });
    expect(summaries(observation())).toEqual(["web2 is destroyed or powered off"]);
    fake.scrub();
    const scrubbed = observation();
    expect(summaries(scrubbed)).toEqual(["web2 was removed", "project shop changed: targets"]);
    expect(detailsOf(scrubbed)[0]).toMatchObject({ id: resource_id, state: "DESTROYED", scrubbed: true });
    upsert({});
    const again = observation();
    expect(summaries(again)).toEqual(["web2 was added", "project shop changed: targets"]);
    expect(detailsOf(again)[0]).toMatchObject({ name: "web2", replaces: resource_id });
  });
});
