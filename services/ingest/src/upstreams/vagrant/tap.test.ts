import { GetVersionInfoResponse, ListJobsResponse } from "@tapedeck/proto/vagrant/vagrant";
import { describe, expect, it } from "vitest";
import { startFakeVagrant } from "./fake.ts";
import { line, textOf } from "./fake-client.ts";
import { commandResult, setUpShop } from "./fake-shop.ts";
import { listen, when } from "./tap-listen.ts";

describe("a connection", () => {
  it("tells first what it is to, and then every kind of things", async () => {
    await using fake = await startFakeVagrant();
    const shop = setUpShop(fake);
    shop.target({ name: "web1" });
    const id = shop.run();
    await using tapped = listen(fake.address);
    await when("a first look at things", () => tapped.things().length > 0);
    const [dialled, identified, described] = tapped.items.map(({ what }) => what);
    expect(dialled).toEqual({ $case: "dialled", value: { address: fake.address, channels: ["jobs", "things"] } });
    expect(identified).toEqual({ $case: "identified", value: { identity: fake.address, version: "2.3.7" } });
    const state = described?.$case === "described" ? described.value.state : Buffer.alloc(0);
    expect(described).toMatchObject({ $case: "described", value: { channel: "version" } });
    expect(GetVersionInfoResponse.decode(state).info?.version).toBe("2.3.7");
    expect(new Set(tapped.items.map(({ connection }) => connection)).size).toBe(1);
    const [list] = tapped.lists();
    expect(list && ListJobsResponse.decode(list).jobs.map((job) => job.id)).toEqual([id]);
    const kinds = tapped
      .things()[0]
      ?.kinds.map(({ kind, same, entries }) => [kind, same, entries.map((each) => each.id)]);
    expect(kinds).toEqual([
      ["target", false, [expect.any(String)]],
      ["project", false, [shop.project]],
      ["basis", false, [shop.basis]],
      ["box", false, []],
      ["runner", false, [shop.runner]],
    ]);
  });
});

describe("the stream of a job", () => {
  it("is followed to its end, and replayed after it", async () => {
    await using fake = await startFakeVagrant();
    const shop = setUpShop(fake);
    await using tapped = listen(fake.address);
    await when("a look", () => tapped.lists().length > 0);
    const id = shop.queue();
    await when("the stream", () => fake.streams() === 1);
    fake.jobs.assign(id);
    fake.jobs.ack(id);
    fake.jobs.write(id, [line("one"), line("two")]);
    await when("lines", () => tapped.terminals(id).length === 1);
    fake.jobs.write(id, [line("three")]);
    await when("lines", () => tapped.terminals(id).length === 2);
    fake.jobs.complete(id, commandResult({ run_result: true }));
    await when("both ends", () => tapped.ends(id).length === 2);
    const [first, second, ...others] = tapped.openings(id);
    expect(others).toEqual([]);
    expect(first?.map(({ event }) => event)).toEqual([
      "open",
      "state",
      "state",
      "state",
      "terminal",
      "terminal",
      "state",
      "complete",
    ]);
    expect(first?.map(({ before }) => before)).toEqual([0n, 0n, 0n, 0n, 0n, 2n, 3n, 3n]);
    expect(second?.map(({ event }) => event)).toEqual(["open", "state", "terminal", "complete"]);
    expect(tapped.terminals(id).map(({ events }) => events.map(textOf))).toEqual([
      ["one", "two"],
      ["three"],
      ["one", "two", "three"],
    ]);
    expect(tapped.ends(id).map(({ code }) => code)).toEqual([0, 0]);
    expect(fake.streams()).toBe(0);
  });
});
