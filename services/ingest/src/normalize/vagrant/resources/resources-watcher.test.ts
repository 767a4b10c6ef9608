import { Resources } from "@tapedeck/proto/tapedeck/v1/observation";
import { Ref_Target } from "@tapedeck/proto/vagrant/sdk/sdk";
import { type Operation_PhysicalState, Target, Vagrantfile } from "@tapedeck/proto/vagrant/vagrant";
import { describe, expect, it } from "vitest";
import { type ComparedOutcome, described, fact, frame, unreadable } from "../../inventory/testing/outcome-fields.ts";
import { mask } from "../mask.ts";
import {
  basis,
  box,
  detailsOf,
  type Entry,
  everyKind,
  framesOf,
  intervalsOf,
  type ListedResources,
  playResources,
  project,
  readBack,
  runner,
  target,
} from "../testing/resources-play.ts";

const shop = { project: [project("p1")], basis: [basis("b1")], box: [box("x1")], runner: [runner("r1")] };
const record = (value: string) => ({ record: { type_url: "type.googleapis.com/x", value: Buffer.from(value) } });

describe("a later observation", () => {
  it.each<{ name: string; before: ListedResources; now: ListedResources; reports: readonly ComparedOutcome[] }>([
    { name: "nothing", before: { target: [target("w1")] }, now: { target: [target("w1")] }, reports: [] },
    { name: "a new target", before: {}, now: { target: [target("w1")] }, reports: [frame(fact("target.added", "w1"))] },
    {
      name: "one that is gone",
      before: { target: [target("w1")] },
      now: { target: [] },
      reports: [frame(fact("target.removed", "w1"))],
    },
    {
      name: "resources that come and go at once, those that are gone first",
      before: { box: [box("x1"), box("x2")] },
      now: { box: [box("x3"), box("x2", { directory: "/d" }), box("x4")] },
      reports: [
        frame(fact("box.removed", "x1")),
        frame(fact("box.added", "x3")),
        frame(fact("box.changed", "x2", { changed: ["directory"] })),
        frame(fact("box.added", "x4")),
      ],
    },
    {
      name: "a state",
      before: { target: [target("w1", { state: "NOT_CREATED" })] },
      now: { target: [target("w1", { state: "CREATED", ...record("a") })] },
      reports: [frame(fact("target.changed", "w1", { changed: ["state", "record"] }))],
    },
    {
      name: "that a target is its own parent",
      before: { target: [target("w1", { parent: undefined })] },
      now: { target: [target("w1")] },
      reports: [],
    },
    {
      name: "a parent that is another's",
      before: { target: [target("w1")] },
      now: { target: [target("w1", { parent: { resource_id: "w2" } })] },
      reports: [frame(fact("target.changed", "w1", { changed: ["parent"] }))],
    },
    {
      name: "the other fields of a reference",
      before: { target: [target("w1")] },
      now: { target: [target("w1", { project: { resource_id: "p1", name: "shop2" } })] },
      reports: [],
    },
    {
      name: "when a box was updated",
      before: { box: [box("x1")] },
      now: { box: [box("x1", { last_update: { seconds: 7n, nanos: 0 } })] },
      reports: [],
    },
    {
      name: "a project's targets and configuration",
      before: { project: [project("p1")] },
      now: {
        project: [
          project("p1", {
            targets: [Ref_Target.fromPartial({ resource_id: "w1" })],
            configuration: Vagrantfile.fromPartial({ path: { path: "/v" } }),
          }),
        ],
      },
      reports: [frame(fact("project.changed", "p1", { changed: ["targets", "configuration"] }))],
    },
    {
      name: "a basis and its projects",
      before: { basis: [basis("b1")] },
      now: { basis: [basis("b1", { remote_enabled: true }), basis("b2")] },
      reports: [frame(fact("basis.changed", "b1", { changed: ["remote_enabled"] })), frame(fact("basis.added", "b2"))],
    },
    {
      name: "runners",
      before: { runner: [runner("r1"), runner("r2")] },
      now: { runner: [runner("r1", { by_id_only: false }), runner("r3")] },
      // Nobody has asked for r2.
      reports: [frame(fact("runner.changed", "r1", { changed: ["by_id_only"] })), frame(fact("runner.added", "r3"))],
    },
    {
      name: "a runner that was asked for, and which the server does not know any more",
      before: { runner: [runner("r1"), runner("r2")] },
      now: { runner: [runner("r1")], missing: ["r2", "never known"] },
      reports: [frame(fact("runner.removed", "r2"))],
    },
    {
      name: "several kinds at once",
      before: { ...shop },
      now: { target: [target("w1")], project: [], runner: "same" },
      reports: [frame(fact("target.added", "w1")), frame(fact("project.removed", "p1"))],
    },
  ])("emits $name", ({ before, now, reports }) => {
    const harness = playResources();
    expect(harness.observation(1_000, { ...everyKind, ...before })).toEqual([described]);
    expect(harness.observation(2_000, now)).toEqual(reports);
    expect(harness.observation(3_000, now)).toEqual([]);
    const frames = framesOf(harness.record).slice(1);
    expect(intervalsOf(harness.record).slice(1)).toEqual(frames.map(() => [1_000, 2_000]));
    for (const { facts, original } of frames) {
      const [noun, verb] = facts[0].kind.split(".");
      const type = `hashicorp.vagrant.${noun?.replace(/^./, (letter) => letter.toUpperCase())}`;
      expect(original?.type).toBe(verb === "removed" ? undefined : type);
      expect(facts[0].inferred).toBeUndefined();
    }
  });

  it("keeps an entry's bytes as they came", () => {
    const harness = playResources();
    harness.observation(1_000, everyKind);
    const [id, bytes] = target("w1");
    const unusual = Buffer.concat([bytes, Buffer.from("d20302ffff", "hex"), bytes]);
    harness.observation(2_000, { target: [[id, unusual]] });
    expect(framesOf(harness.record).at(-1)?.original?.bytes).toEqual(unusual);
  });

  it("says what the resources are", () => {
    const harness = playResources();
    harness.observation(1_000, everyKind);
    harness.observation(2_000, { ...shop, target: [target("w1", { name: "web1", state: "NOT_CREATED" })] });
    const [b, x, p, r, t] = ["basis", "box", "project", "runner", "target"].map((kind) =>
      detailsOf(harness.record).find((detail) => "kind" in detail && detail.kind === kind),
    );
    expect(t).toEqual({
      kind: "target",
      id: "w1",
      name: "web1",
      parent_id: "p1",
      parent_name: "shop",
      state: "NOT_CREATED",
    });
    expect(p).toEqual({ kind: "project", id: "p1", name: "shop", parent_id: "b1", parent_name: "default" });
    expect(b).toEqual({ kind: "basis", id: "b1", name: "default" });
    expect(x).toEqual({
      kind: "box",
      id: "x1",
      name: "hashicorp/bionic64",
      version: "1.0.282",
      provider: "virtualbox",
      directory: "/boxes/bionic64",
    });
    expect(r).toEqual({ kind: "runner", id: "r1" });
    expect(framesOf(harness.record).map(({ facts: [{ summary }] }) => summary)).toEqual([
      "the server has 0 targets, 0 projects, 0 bases, 0 boxes, 0 runners",
      "project shop was added",
      "basis default was added",
      "box hashicorp/bionic64 1.0.282 (virtualbox) was added",
      "runner r1 was added",
      "web1 was added",
    ]);
  });
});

describe("a target", () => {
  it.each([
    ["UNKNOWN", "w1 is in an unknown state"],
    ["PENDING", "w1 is pending"],
    ["DESTROYED", "w1 is destroyed or powered off"],
    ["HALTED", "w1 is halted"],
    ["NOT_CREATED", "w1 is not created"],
    ["CREATED", "w1 is running"],
  ] as const)("emits its state %s and the one before", (state, summary) => {
    const before = state === "PENDING" ? "CREATED" : "PENDING";
    const harness = playResources();
    harness.observation(1_000, { target: [target("w1", { state: before })] });
    harness.observation(2_000, { target: [target("w1", { state })] });
    expect(framesOf(harness.record)[1]?.facts[0].summary).toBe(summary);
    expect(detailsOf(harness.record)).toMatchObject([{ state, last_state: before, changed: ["state"] }]);
  });

  it("emits an unknown state by its number, and other changes by their names", () => {
    const harness = playResources();
    const odd = Target.fromPartial({ resource_id: "w1", name: "w1", provider: "virtualbox" });
    const [, bytes] = ["w1", Target.encode({ ...odd, state: 9 as Operation_PhysicalState }).finish()] as const;
    harness.observation(1_000, { target: [target("w1")] });
    harness.observation(2_000, { target: [["w1", bytes]] });
    harness.observation(3_000, {
      target: [["w1", Target.encode({ ...odd, state: 9 as Operation_PhysicalState, uuid: "u" }).finish()]],
    });
    expect(framesOf(harness.record).map(({ facts: [{ summary }] }) => summary)).toEqual([
      "the server has 1 target",
      "w1 is in state 9",
      "w1 changed: uuid",
    ]);
    expect(detailsOf(harness.record)[1]).not.toHaveProperty("last_state");
  });

  it.each([
    { state: "NOT_CREATED", scrubbed: true },
    { state: "DESTROYED", scrubbed: true },
    { state: "CREATED", scrubbed: false },
    { state: "UNKNOWN", scrubbed: false },
  ] as const)("was scrubbed if it was $state: $scrubbed", ({ state, scrubbed }) => {
    const harness = playResources();
    harness.observation(1_000, { target: [target("w1", { state })] });
    harness.observation(2_000, { target: [] });
    expect(framesOf(harness.record)[1]?.facts[0].summary).toBe("w1 was removed");
    const [detail] = detailsOf(harness.record);
    expect(detail).toEqual({
      kind: "target",
      id: "w1",
      name: "w1",
      parent_id: "p1",
      parent_name: "shop",
      state,
      ...(scrubbed && { scrubbed }),
    });
  });

  it("replaces the one of the same project and name that was removed, once", () => {
    const harness = playResources();
    const web = (id: string, project = "p1") => target(id, { name: "web", project: { resource_id: project } });
    harness.observation(1_000, { ...everyKind, target: [web("1"), web("x", "p2")] });
    expect(harness.observation(2_000, { target: [web("2"), web("x", "p2")] })).toEqual([
      frame(fact("target.removed", "1")),
      frame(fact("target.added", "2")),
    ]);
    harness.observation(3_000, { target: [] });
    harness.observation(4_000, { target: [web("3"), web("y", "p3")] });
    harness.observation(5_000, { target: [web("3"), web("y", "p3"), target("db")] });
    harness.observation(6_000, { target: [web("3")] });
    harness.observation(7_000, { target: [web("3"), target("db"), web("z", "p2")] });
    const added = framesOf(harness.record).flatMap(({ facts: [{ kind, detail }] }) =>
      kind === "target.added" && detail?.$case === "thing" ? [[detail.value.id, detail.value.replaces]] : [],
    );
    expect(added).toEqual([
      ["2", "1"],
      ["3", "2"],
      ["y", ""],
      ["db", ""],
      ["db", ""],
      ["z", "x"],
    ]);
  });

  it("replaces none that was replaced before, also when that one is called otherwise now", () => {
    const harness = playResources();
    harness.observation(1_000, { target: [target("1", { name: "web" })] });
    harness.observation(2_000, { target: [target("2", { name: "web" })] });
    const renamed = target("2", { name: "old" });
    harness.observation(3_000, { target: [renamed] });
    const later = playResources();
    for (const event of readBack(harness.record)) later.watcher.resume(event);
    for (const { observation, record } of [harness, later]) {
      observation(4_000, { target: [renamed, target("3", { name: "web" })] });
      expect(detailsOf(record).at(-1)).toMatchObject({ id: "3", name: "web" });
      expect(detailsOf(record).at(-1)).not.toHaveProperty("replaces");
    }
  });

  it("names the command that runs on its project when it is seen, as its project does", () => {
    let running: string | undefined = "j1";
    const harness = playResources({ runningCommand: (of) => (of === "p1" ? running : undefined) });
    harness.observation(1_000, everyKind);
    harness.observation(2_000, { ...shop, target: [target("w1"), target("w2", { project: { resource_id: "p2" } })] });
    running = undefined;
    harness.observation(3_000, { target: [] });
    expect(
      detailsOf(harness.record).flatMap((detail) =>
        "job" in detail && "id" in detail ? [[detail.id, detail.job]] : [],
      ),
    ).toEqual([
      ["p1", "j1"],
      ["w1", "j1"],
    ]);
  });
});

describe("bytes that can't be read", () => {
  const broken = (id: string, more = ""): Entry => [id, Buffer.from(`\n\xff${more}`, "latin1")];

  it("is emitted once for the same bytes, and keeps what was known of it", () => {
    const harness = playResources();
    expect(harness.observation(1, { target: [target("w1"), broken("w2")] })).toEqual([described, unreadable]);
    expect(harness.observation(2, { target: [broken("w1"), broken("w2")] })).toEqual([]);
    expect(harness.observation(3, { target: [broken("w1", "more"), broken("w2")] })).toEqual([unreadable]);
    expect(harness.observation(4, { target: [target("w1"), broken("w2")] })).toEqual([]);
    expect(harness.observation(5, { target: [target("w1", { uuid: "u" }), target("w2")] })).toEqual([
      frame(fact("target.changed", "w1", { changed: ["uuid"] })),
      frame(fact("target.added", "w2")),
    ]);
    const [, second] = framesOf(harness.record);
    expect(second?.original).toMatchObject({ type: "hashicorp.vagrant.Target", bytes: broken("w2")[1] });
    expect(second?.facts[0].summary).toMatch(/^2 bytes that can't be read: /);
  });

  it("is an entry without an id, with a long one, or larger than the log takes", () => {
    const harness = playResources({ frameBytes: 16 * 1024 + 100 });
    const large = target("w3", { uuid: "u".repeat(200) });
    expect(harness.observation(1, { target: [target(""), target("i".repeat(201)), large, target("w1")] })).toEqual([
      described,
      unreadable,
      unreadable,
      unreadable,
    ]);
    expect(harness.observation(2, { target: [target("w1")] })).toEqual([]);
  });

  it("is no kind that is not known", () => {
    const harness = playResources();
    const observation = { $case: "resources", value: Resources.fromPartial({ kinds: [{ kind: "gadget" }] }) } as const;
    expect([...harness.watcher.observe("resources", { result: observation }, { seconds: 1n, nanos: 0 })]).toEqual([]);
    expect([...harness.watcher.observe("resources", { result: undefined }, { seconds: 2n, nanos: 0 })]).toEqual([]);
  });
});

describe("secrets", () => {
  it("are masked in all that is emitted, and one that changes is no news", () => {
    const harness = playResources({ mask });
    const withSecret = (secret: string, uuid = "") =>
      target("w1", { uuid, metadata: { metadata: { password: secret } } });
    expect(harness.observation(1, { target: [withSecret("hunter2")] })).toEqual([described]);
    expect(harness.observation(2, { target: [withSecret("hunter3")] })).toEqual([]);
    expect(harness.observation(3, { target: [withSecret("hunter4", "u")] })).toEqual([
      frame(fact("target.changed", "w1", { changed: ["uuid"] })),
    ]);
    for (const { original } of framesOf(harness.record)) {
      expect(Buffer.from(original?.bytes ?? []).toString("latin1")).toContain("*******");
      expect(original?.redacted).toBe(1);
    }
  });
});
