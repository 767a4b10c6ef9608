import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { encodeHoles } from "@tapedeck/shared/log/holes/known-holes";
import { endSubjects, endsStream, everyEndSubject } from "@tapedeck/shared/log/subjects";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, it } from "vitest";
import { scenario } from "./testing/scenario.ts";
import { reaches, stage } from "./testing/stage.ts";

it("the warning of events that the log has lost ends when the tables have the gap that reports them", async () => {
  await using on = await stage();
  const alice = scenario();
  alice.session("A1").started();
  const written = await on.write(alice.events);
  const { source } = alice.events[0] ?? { source: "" };
  const nc = await connect({ servers: on.nats.url });
  const jsm = await jetstreamManager(nc);
  await jsm.streams.add({
    name: endsStream,
    subjects: [everyEndSubject],
    max_msgs_per_subject: 1,
    allow_direct: true,
  });
  const hole = {
    source: source as Parameters<typeof encodeHoles>[1][number]["source"],
    sessions: ["A1"],
    first: 1,
    last: 1,
  };
  await jetstream(nc).publish(endSubjects("acme").holes, encodeHoles(on.log.epoch, [hole]));
  await nc.close();
  await using query = await on.startQuery();
  await reaches(query, written.at(-1) ?? 0);
  const warnings = async () => {
    const body: unknown = await (await fetch(`http://${query.addresses.health}/readyz`)).json();
    return (body as { details?: { warnings?: string[] } }).details?.warnings ?? [];
  };
  await until(async () => (await warnings()).some((one) => one.includes(`may lack events of ${source}`)), {
    message: "the warning",
  });
  const lost = { after: "", before: "", ordinals: [], events: 3n };
  const value = { channel: "v1", reason: "the log has lost 3 events", dropped: {}, lost };
  const before = alice.events.length;
  alice.add({ kind: "session.gap", session: "A1", detail: { $case: "gap", value } });
  await on.write(alice.events.slice(before));
  await until(async () => (await warnings()).length === 0, { message: "the warning to end" });
  expect(await warnings()).toEqual([]);
});
