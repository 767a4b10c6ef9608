import { commandResult, setUpShop } from "@tapedeck/ingest/upstreams/vagrant/fake-shop";
import { until } from "@tapedeck/shared/testing/until";
import { expect, test } from "vitest";
import { jobRequest } from "../vagrant-deck.ts";
import { holes, sessionsOf } from "./recorded-events.ts";
import { vagrantBench } from "./vagrant-bench.ts";
import { outputIsPlaced } from "./vagrant-flow.ts";
import { vagrantKillsLeaveNoTrace } from "./vagrant-kills.ts";

test("kill -9 of ingest, log and gateway while Vagrant's jobs run changes nothing that is recorded of them", async () => {
  await vagrantKillsLeaveNoTrace({ faults: ["told", "gateway", "both", "cut", "told"] });
}, 120_000);

test("kill -9 of ingest and log while a job writes and writes puts no line in a wrong place", async () => {
  await outputIsPlaced({ faults: ["told", "both", "told", "cut"], lines: 6_000, tapsBeside: true });
}, 120_000);

test("a server that was started anew while nobody recorded it is another session", async () => {
  await using bench = await vagrantBench(["anew"]);
  const { ingest, client, hosts } = bench;
  const [host] = hosts;
  if (host === undefined) throw new Error("no host");
  const { fake, events } = host;
  const told = async (job: string, kind: string) =>
    (await events()).filter(({ event }) => event.subject === job && event.kind === kind).map(({ event }) => event);
  const tells = (job: string, kind: string, times = 1) =>
    until(async () => (await told(job, kind)).length === times, { message: `${kind} of ${job}` });
  const shop = setUpShop(fake);
  const job = shop.run();
  fake.jobs.complete(job, commandResult({ run_result: true }));
  await tells(job, "command.finished");
  const left = shop.run();
  await tells(left, "command.started");
  await bench.recorded();
  await ingest.kill();
  await fake.restart();
  const after = shop.run();
  fake.jobs.complete(after, commandResult({ run_result: true }));
  await ingest.start();
  await tells(after, "command.finished");
  await tells(left, "command.started", 2);
  const [one, other] = sessionsOf(await events());
  expect((await told(left, "job.started")).map(({ session }) => session)).toEqual([one, other]);
  expect((await told(job, "job.succeeded")).map(({ session }) => session)).toEqual([one]);
  expect((await told(after, "job.succeeded")).map(({ session }) => session)).toEqual([other]);
  expect(await told(left, "job.lost")).toEqual([]);
  expect(holes(await events())).toEqual([]);
  for (const id of [job, left, after]) {
    const isServed = async () => (await client.ask("GetJob", jobRequest(id))).code === 0;
    await until(isServed, { message: `job ${id} to be served` });
  }
}, 120_000);
