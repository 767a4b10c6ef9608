import { Job, job_StateToJSON } from "@tapedeck/proto/vagrant/vagrant";
import { sourceName } from "@tapedeck/shared/source";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Query } from "../../../query.ts";
import { queryClient } from "../../../testing/client.ts";
import { scenario } from "../../../testing/scenario.ts";
import { reaches, type Stage, stage } from "../../../testing/stage.ts";
import { ulid, vagrantSession, vagrantShop } from "../../../testing/vagrant-scenario.ts";

/** Two servers one after the other; what is left of a job of the first shows up in the second. */
const script = scenario(vagrantShop);
script.add({ kind: "source.added" });
const beforeSessions = script.events.length;
const first = vagrantSession("01A", script);
first.began();
first.queued(ulid(2), "up");
first.queued(ulid(1), "");
first.started(ulid(2));
const running = script.events.length;
first.finished(ulid(2), 1);
first.ended();
const ended = script.events.length;
const second = vagrantSession("01B", script);
second.began();
second.queued(ulid(3), "halt");
second.canceled(ulid(1));

const other = scenario(sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "vagrant" }));
const bobs = vagrantSession("01C", other);
bobs.began();
bobs.queued(ulid(4), "up");
const empty = scenario(sourceName({ workspace: "acme", developer: "carol", project: "shop", upstream: "vagrant" }));
empty.add({ kind: "source.added" });

let on: Stage;
let query: Query;
let ask: ReturnType<typeof queryClient>;
let positions: number[];

beforeAll(async () => {
  on = await stage();
  query = await on.startQuery();
  positions = await on.write([...script.events, ...other.events, ...empty.events]);
  await on.writeIn("globex", []);
  await reaches(query, positions.at(-1) ?? 0);
  ask = queryClient(query.address);
});

afterAll(async () => {
  ask[Symbol.dispose]();
  await query[Symbol.asyncDispose]();
  await on[Symbol.asyncDispose]();
});

async function jobs(request: Parameters<typeof ask.readState>[0] = {}) {
  const { head, rows } = await ask.readState({ source: vagrantShop, collection: "vagrant.jobs", ...request });
  const read = rows.map((bytes) => Job.decode(bytes)).map(({ id, state }) => [id, job_StateToJSON(state)]);
  return { ...head, jobs: read };
}

/** The position of the scenario's event number `count`. */
function after(count: number): string {
  return on.at(positions[count - 1] ?? 0);
}

it("returns the jobs of every session of the source, with their last answers, in the order of their ids", async () => {
  expect(await jobs()).toMatchObject({
    position: on.endAt(positions.at(-1) ?? 0),
    source: vagrantShop,
    session: "01B",
    session_ended: false,
    jobs: [
      [ulid(1), "ERROR"],
      [ulid(2), "SUCCESS"],
      [ulid(3), "QUEUED"],
    ],
  });
});

it("returns the jobs of a named session, as that session reported them", async () => {
  expect(await jobs({ session: "01A" })).toMatchObject({
    session: "01A",
    session_ended: true,
    jobs: [
      [ulid(1), "QUEUED"],
      [ulid(2), "SUCCESS"],
    ],
  });
});

it("returns them as of an earlier position", async () => {
  expect(await jobs({ at: after(running) })).toMatchObject({
    position: after(running),
    session: "01A",
    session_ended: false,
    jobs: [
      [ulid(1), "QUEUED"],
      [ulid(2), "RUNNING"],
    ],
  });
  const over = { session: "01A", session_ended: true, jobs: [[ulid(1), "QUEUED"], expect.anything()] };
  expect(await jobs({ at: after(ended) })).toMatchObject(over);
});

it("returns a single job by its id", async () => {
  expect((await jobs({ key_prefix: ulid(2) })).jobs).toEqual([[ulid(2), "SUCCESS"]]);
  expect((await jobs({ key_prefix: ulid(4) })).jobs).toEqual([]);
  expect((await jobs({ key_prefix: ulid(1).slice(0, -1) })).jobs).toHaveLength(3);
});

it.each(["%", "01KABC_", "'", "\\", "\0", "\u{10FFFF}"])("finds no job whose id begins with %j", async (key_prefix) => {
  expect((await jobs({ key_prefix })).jobs).toEqual([]);
});

it("reports the position of a job's last answer", async () => {
  const found = await ask.readState({ source: vagrantShop, collection: "vagrant.jobs", key_prefix: ulid(2) });
  // Before the end of its command and that of the session.
  expect(found.positions).toEqual([after(ended - 2)]);
});

it("returns none for a source without a session", async () => {
  expect(await jobs({ source: empty.source })).toMatchObject({ session: "", session_ended: false, jobs: [] });
  expect(await jobs({ at: after(beforeSessions) })).toMatchObject({ session: "", jobs: [] });
});

it("refuses the same requests as for state", async () => {
  await expect(jobs({ session: "01C" })).rejects.toMatchObject({ code: "unknown_session" });
  await expect(jobs({ session: "01B", at: after(ended) })).rejects.toMatchObject({ code: "before_first" });
  await expect(jobs({ workspace: "globex" })).rejects.toMatchObject({ code: "unknown_source" });
  await expect(jobs({ collection: "vagrant.commands" })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("vagrant.jobs"),
  });
});
