import { Job, Job_State } from "@tapedeck/proto/vagrant/vagrant";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Query } from "../../query.ts";
import { queryClient } from "../../testing/client.ts";
import { reaches, type Stage, stage } from "../../testing/stage.ts";
import { story } from "../../testing/story.ts";
import { ulid, vagrantSession, vagrantShop } from "../../testing/vagrant-story.ts";

const tale = story(vagrantShop);
tale.tell({ kind: "source.added" });
const first = vagrantSession("01A", tale);
first.began();
first.queued(ulid(1), "", { at: 10 });
first.started(ulid(1), { at: 20 });
first.finished(ulid(1), undefined, { at: 30 });
first.queued(ulid(2), "up", { at: 40 });
first.started(ulid(2), { at: 50 });
first.text(ulid(2), "==> web1: Booting VM...");
first.finished(ulid(2), 1, { at: 1_050 });
first.ended();
const second = vagrantSession("01B", tale);
second.began();
second.queued(ulid(3), "halt");

let on: Stage;
let query: Query;
let ask: ReturnType<typeof queryClient>;
let positions: number[];

beforeAll(async () => {
  on = await stage();
  query = await on.startQuery();
  positions = await on.write(tale.events);
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
  return { ...head, jobs: rows.map((bytes) => Job.decode(bytes)).map(({ id, state }) => [id, state]) };
}

it("of all sessions of a source, in the order of their ids", async () => {
  expect(await jobs()).toMatchObject({
    session: "01B",
    session_ended: false,
    jobs: [
      [ulid(1), Job_State.SUCCESS],
      [ulid(2), Job_State.SUCCESS],
      [ulid(3), Job_State.QUEUED],
    ],
  });
});
