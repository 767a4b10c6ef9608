import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { type DeepPartial, Resources } from "@tapedeck/proto/tapedeck/v1/observation";
import { Target } from "@tapedeck/proto/vagrant/vagrant";
import { expect, it } from "vitest";
import { type Fields, scenario } from "../../testing/scenario.ts";
import { ulid, type VagrantSession, vagrantSession, vagrantShop } from "../../testing/vagrant-scenario.ts";
import { stateItems } from "../states/fold.ts";
import { evolve } from "./evolve.ts";
import { vagrant } from "./fold.ts";
import { initialState, type VagrantState } from "./state.ts";

function reported(given: (server: VagrantSession) => void): readonly Event[] {
  const script = scenario(vagrantShop);
  given(vagrantSession("S", script));
  return script.events;
}

function fold(events: readonly Event[], from: VagrantState = initialState): VagrantState {
  return events.reduce(evolve, from);
}

function targets(state: VagrantState): Target[] {
  return (stateItems(vagrant, "targets", state) ?? []).map(({ bytes }) => Target.decode(bytes));
}

function ids(collection: string, state: VagrantState): string[] {
  return (stateItems(vagrant, collection, state) ?? []).map(({ key }) => key);
}

/** An event that no watcher would give so. */
function odd(fields: Fields & { readonly kind: string }): Event {
  return scenario(vagrantShop).add({ session: "S", channel: "resources", ...fields });
}

function describedAs(message: DeepPartial<Resources>, part = 0, parts = 1): Event {
  const bytes = Buffer.from(Resources.encode(Resources.fromPartial<DeepPartial<Resources>>(message)).finish());
  const original = { type: "tapedeck.v1.Resources", bytes, size: BigInt(bytes.length) };
  return odd({ kind: "inventory.described", detail: { $case: "host", value: { part, parts, entries: 1 } }, original });
}

const described = reported((server) => {
  server.there("project", "P", { name: "shop" });
  server.there("target", "T2", { name: "web2" });
  server.there("target", "T1", { name: "web1" });
  server.described();
});

it("a description sets the resources, in the order of the upstream's lists", () => {
  const state = fold(described);
  expect(ids("targets", state)).toEqual(["T2", "T1"]);
  expect(ids("projects", state)).toEqual(["P"]);
  expect(ids("boxes", state)).toEqual([]);
});

it("an added resource comes last, a changed one keeps its position, a removed one goes", () => {
  const changes = reported((server) => {
    server.reported("target", "T0", { name: "db" });
    server.reported("target", "T2", { name: "web2", provider: "virtualbox" });
    server.removed("target", "T1");
    server.removed("project", "another");
  });
  const state = fold(changes, fold(described));
  expect(targets(state)).toMatchObject([
    { resource_id: "T2", name: "web2", provider: "virtualbox" },
    { resource_id: "T0", name: "db" },
  ]);
  expect(ids("projects", state)).toEqual(["P"]);
});

it("resources of different kinds may have the same id", () => {
  const state = fold(
    reported((server) => {
      server.reported("target", "same", { name: "web" });
      server.reported("box", "same", { name: "bionic64" });
      server.removed("target", "same");
    }),
  );
  expect([ids("targets", state), ids("boxes", state)]).toEqual([[], ["same"]]);
});

it("a runner that left is removed: GetRunner has nothing to answer", () => {
  const state = fold(
    reported((server) => {
      server.reported("runner", "R1", { by_id_only: true });
      server.reported("runner", "R2", { by_id_only: true });
      server.removed("runner", "R1");
    }),
  );
  expect(ids("runners", state)).toEqual(["R2"]);
});

it("the last part of a description removes what no part lists and sets the order", () => {
  const parts = reported((server) => {
    for (const id of ["T1", "T3", "T4"]) server.there("target", id, { name: id });
    server.described(3);
  });
  const before = fold(described);
  expect(ids("targets", fold(parts.slice(0, 2), before))).toEqual(["T2", "T1", "T3"]);
  const after = fold(parts, before);
  expect(ids("targets", after)).toEqual(["T1", "T3", "T4"]);
  expect(ids("projects", after)).toEqual([]);
});

it("an interrupted description removes nothing", () => {
  const parts = reported((server) => {
    for (const id of ["T3", "T4", "T5"]) server.there("target", id, { name: id });
    server.described(3, (part) => part === 0 && server.reported("target", "T6", { name: "T6" }));
  });
  expect(ids("targets", fold(parts, fold(described)))).toEqual(["T2", "T1", "T3", "T6", "T4", "T5"]);
});

it.each([
  ["can't be read", { bytes: Buffer.from([0xff]), size: 1n }],
  ["was larger than the log takes", { bytes: Buffer.alloc(0), size: 8_000_000n }],
  ["is of another type", { type: "hashicorp.vagrant.Target", bytes: Buffer.alloc(0), size: 0n }],
])("nothing follows from a description that %s", (_title, original) => {
  const detail = { $case: "host" as const, value: { part: 0, parts: 1, entries: 0 } };
  const event = odd({ kind: "inventory.described", detail, original: { type: "tapedeck.v1.Resources", ...original } });
  const before = fold(described);
  expect(evolve(before, event)).toBe(before);
});

it("a resource that can't be decoded stays as it was known", () => {
  const entries = ["T1", "T7"].map((id) => ({ id, bytes: Buffer.from([0xff]) }));
  const state = fold([describedAs({ kinds: [{ kind: "target", entries }] })], fold(described));
  expect(targets(state)).toMatchObject([{ resource_id: "T1", name: "web1" }]);
});

it("unknown kinds, resources without an id and duplicates are ignored", () => {
  const bytes = Buffer.from(Target.encode(Target.fromPartial({ resource_id: "T1", name: "web1" })).finish());
  const kinds = [
    { kind: "plugin", entries: [{ id: "X", bytes: Buffer.from([0xff]) }] },
    {
      kind: "target",
      entries: [
        { id: "", bytes },
        { id: "T1", bytes },
        { id: "T1", bytes },
      ],
    },
  ];
  expect(ids("targets", fold([describedAs({ kinds })]))).toEqual(["T1"]);
});

it("messages keep their recorded bytes, with unknown fields", () => {
  const known = Target.encode(Target.fromPartial({ resource_id: "T1", name: "web1" })).finish();
  // A field of a later version in front: nobody would encode it there.
  const bytes = Buffer.concat([Buffer.from([0xa2, 0x06, 0x03, 0x6e, 0x65, 0x77]), known]);
  const original = { type: "hashicorp.vagrant.Target", bytes, size: BigInt(bytes.length) };
  const state = fold([odd({ kind: "target.added", subject: "T1", original })]);
  expect(stateItems(vagrant, "targets", state)).toEqual([{ key: "T1", bytes }]);
});

it("returns the same object for an event that changes nothing", () => {
  const state = fold([...described, ...reported((server) => server.began())]);
  const repeated = [
    ...described,
    ...reported((server) => {
      server.began();
      server.queued(ulid(1));
      server.text(ulid(1), "==> web1: Booting VM...");
      server.ended();
    }),
    odd({ kind: "target.changed", subject: "T1" }),
    odd({ kind: "target.added", subject: "" }),
    odd({ kind: "target.removed", subject: "unknown" }),
    odd({ kind: "upstream.unreadable", subject: "T1" }),
    odd({ kind: "box.added", subject: "X", original: { type: "hashicorp.vagrant.Box", bytes: Buffer.from([0xff]) } }),
  ];
  for (const event of repeated) expect(evolve(state, event)).toBe(state);
});

it("the version is the last reported one", () => {
  const state = fold([...reported((server) => server.began("2.3.7")), ...reported((server) => server.began("2.4.3"))]);
  const [item, ...others] = stateItems(vagrant, "version", state) ?? [];
  expect(others).toEqual([]);
  expect([item?.key, Buffer.from(item?.bytes ?? []).includes("2.4.3")]).toEqual(["version", true]);
  expect(stateItems(vagrant, "version", initialState)).toEqual([]);
});

it("is plain JSON at any position, also in the middle of a description", () => {
  const events = reported((server) => {
    server.began();
    for (const id of ["T1", "__proto__", "5", "odd\0"]) server.there("target", id, { name: id });
    server.described(2);
  });
  events.reduce((before, event) => {
    const state = evolve(before, event);
    expect(JSON.parse(JSON.stringify(state))).toEqual(state);
    return state;
  }, initialState);
  expect(ids("targets", fold(events))).toEqual(["T1", "__proto__", "5", "odd\0"]);
});
