import { Job } from "@tapedeck/proto/vagrant/vagrant";
import { storedOffset } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { sourceName } from "@tapedeck/shared/source";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openDatabase } from "../../../db/database.ts";
import type { Query } from "../../../query.ts";
import { queryClient } from "../../../testing/client.ts";
import { scenario } from "../../../testing/scenario.ts";
import { reaches, type Stage, stage } from "../../../testing/stage.ts";
import { ulid, vagrantSession } from "../../../testing/vagrant-scenario.ts";

const bobs = scenario(sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "vagrant" }));
const newest = ulid(4);

let on: Stage;
let query: Query;
let ask: ReturnType<typeof queryClient>;

beforeAll(async () => {
  on = await stage();
  query = await on.startQuery();
  const server = vagrantSession("01C", bobs);
  server.began();
  server.queued(newest, "up");
  await reaches(query, (await on.write(bobs.events)).at(-1) ?? 0);
  ask = queryClient(query.address);
});

afterAll(async () => {
  ask[Symbol.dispose]();
  await query[Symbol.asyncDispose]();
  await on[Symbol.asyncDispose]();
});

it("returns at most the newest 10,000", async () => {
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const bytes = Buffer.from(Job.encode(Job.fromPartial({ id: "old", labels: { text: "x".repeat(5_000) } })).finish());
  const oldest = 20_000;
  await sql`
    insert into vagrant_job_versions (session, source, job, position, message)
    select '01C', ${bobs.source}, '00' || lpad(n::text, 24, '0'), -n, ${bytes}::bytea
    from generate_series(1, ${oldest}) as n`.execute(database.db);
  const { rows } = await ask.readState({ source: bobs.source, collection: "vagrant.jobs" });
  expect(rows).toHaveLength(10_000);
  expect(Job.decode(rows.at(-1) ?? Buffer.of()).id).toBe(newest);
  const few = await ask.readState({
    source: bobs.source,
    collection: "vagrant.jobs",
    key_prefix: "00000000000000000000001",
  });
  expect(few.rows).toHaveLength(1_000);
});

it("returns at most the newest 64 MiB", async () => {
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const old = Buffer.alloc(4 * 1024 * 1024, "old");
  const bytes = Buffer.from(Job.encode(Job.fromPartial({ id: "x".repeat(3 * 1024 * 1024) })).finish());
  await sql`
    insert into vagrant_job_versions (session, source, job, position, message)
    select '01C', ${bobs.source}, 'large' || lpad(n::text, 2, '0'), 500 - n, ${bytes}::bytea
    from generate_series(1, 24) as n`.execute(database.db);
  // Earlier versions count for nothing.
  await sql`
    insert into vagrant_job_versions (session, source, job, position, message)
    select '01C', ${bobs.source}, 'large' || lpad(n::text, 2, '0'), 200 - n, ${old}::bytea
    from generate_series(1, 24) as n`.execute(database.db);
  const large = { source: bobs.source, collection: "vagrant.jobs", key_prefix: "large" };
  const { rows, positions: reported } = await ask.readState(large);
  expect(rows.map(({ length }) => length)).toEqual(Array.from({ length: 21 }, () => bytes.length));
  expect(reported).toEqual(
    Array.from({ length: 21 }, (_, index) =>
      formatPosition({ epoch: on.log.epoch, offset: storedOffset(500 - 4 - index) }),
    ),
  );
  expect((await ask.readState({ ...large, key_prefix: "large01" })).rows).toHaveLength(1);
});
