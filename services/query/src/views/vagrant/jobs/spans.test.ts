import { JobSpan } from "@tapedeck/proto/tapedeck/v1/query";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Query } from "../../../query.ts";
import { queryClient } from "../../../testing/client.ts";
import { scenario } from "../../../testing/scenario.ts";
import { reaches, type Stage, stage } from "../../../testing/stage.ts";
import { ulid, vagrantSession, vagrantShop } from "../../../testing/vagrant-scenario.ts";

/** One job prints beside another one: first by turns, then the other prints much, then the first is over. */
const script = scenario(vagrantShop);
const server = vagrantSession("01A", script);
const [one, other, quiet] = [ulid(1), ulid(2), ulid(3)];
const marks: Record<string, number> = {};
const mark = (name: string) => {
  marks[name] = script.events.length;
};
server.began();
server.queued(one);
mark("begun");
server.queued(other);
server.queued(quiet);
mark("quiet begun");
for (let n = 0; n < 10; n += 1) {
  server.text(one, "by turns", BigInt(n));
  for (let m = 0; m < 50; m += 1) server.text(other, "by turns", BigInt(50 * n + m));
}
mark("all but the last 50");
for (let m = 0; m < 200; m += 1) server.text(other, "much", BigInt(500 + m));
server.finished(one);
mark("over");

let on: Stage;
let query: Query;
let ask: ReturnType<typeof queryClient>;
let positions: number[];

beforeAll(async () => {
  on = await stage();
  query = await on.startQuery();
  positions = await on.write(script.events);
  await reaches(query, positions.at(-1) ?? 0);
  ask = queryClient(query.address);
});

afterAll(async () => {
  ask[Symbol.dispose]();
  await query[Symbol.asyncDispose]();
  await on[Symbol.asyncDispose]();
});

/** The position of the scenario's event number `count`. */
const after = (count: number) => on.at(positions[count - 1] ?? 0);

async function spans(key_prefix: string, more: Parameters<typeof ask.readState>[0] = {}) {
  const request = { source: vagrantShop, collection: "vagrant.job_spans", key_prefix, ...more };
  return (await ask.readState(request)).rows.map((bytes) => {
    const { first, last } = JobSpan.decode(bytes);
    return [first, last];
  });
}

it("a job's spans exclude the output of another job, except short runs", async () => {
  const { begun = 0, over = 0 } = marks;
  const turns = (marks["all but the last 50"] ?? 0) - 50;
  // The end of its command stands beside that of the job.
  expect(await spans(one)).toEqual([
    [after(begun), after(turns)],
    [after(over - 1), after(over)],
  ]);
  expect(await spans(quiet)).toEqual([[after(marks["quiet begun"] ?? 0), after(marks["quiet begun"] ?? 0)]]);
  expect(await spans(other)).toHaveLength(1);
});

it("spans are those of an earlier position, and of a named session", async () => {
  const at = after((marks["quiet begun"] ?? 0) + 1);
  expect(await spans(one, { at })).toEqual([[after(marks.begun ?? 0), at]]);
  expect(await spans(one, { session: "01A" })).toHaveLength(2);
  expect(await spans(ulid(9))).toEqual([]);
});
