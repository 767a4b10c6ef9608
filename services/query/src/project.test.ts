import { openLog } from "@tapedeck/shared/log/jetstream";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connect } from "nats";
import { expect, it } from "vitest";
import { randomEvents, seeded } from "./testing/random-story.ts";
import { projectUntil } from "./testing/run-projection.ts";
import { write } from "./testing/story.ts";
import { contents } from "./testing/tables.ts";

it("gives the same tables however the log is cut into batches", async () => {
  await using server = await startTestNats();
  const nats = await connect({ servers: server.url });
  await using log = await openLog(nats);
  const positions = await write(log, randomEvents(seeded(1), 2_000));
  const end = positions.at(-1) ?? 0;

  await using straight = await freshDatabase();
  await projectUntil(straight.url, log.reader, end);
  const expected = await contents(straight.url);

  const random = seeded(2);
  await using pieces = await freshDatabase();
  for (let next = 0; next < end; ) {
    next = Math.min(end, next + 1 + random(400));
    await projectUntil(pieces.url, log.reader, next, { limits: { events: 1 + random(60), bytes: 1_000_000 } });
  }
  expect(await contents(pieces.url)).toEqual(expected);
  await nats.close();
});
