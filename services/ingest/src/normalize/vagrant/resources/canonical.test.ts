import { Box, Project, Target } from "@tapedeck/proto/vagrant/vagrant";
import { describe, expect, it } from "vitest";
import { type CanonicalFields, changedFields, identified } from "./canonical.ts";

const target = Target.fromPartial.bind(Target);
const project = Project.fromPartial.bind(Project);
const box = Box.fromPartial.bind(Box);
const any = (type: string, value: string) => ({ record: { type_url: type, value: Buffer.from(value) } });

describe("changedFields", () => {
  it.each<{ what: string; before: object; now: object; changed: readonly string[] }>([
    { what: "nothing", before: target({ name: "a" }), now: target({ name: "a" }), changed: [] },
    {
      what: "a missing message and an empty one",
      before: target({}),
      now: target({ metadata: { metadata: {} }, configuration: { data: { entries: [] } }, record: {} }),
      changed: [],
    },
    {
      what: "texts",
      before: target({ uuid: "1" }),
      now: target({ uuid: "2", provider: "x" }),
      changed: ["uuid", "provider"],
    },
    { what: "a state that is the default now", before: target({ state: 5 }), now: target({}), changed: ["state"] },
    { what: "the bytes of an Any", before: target(any("t", "a")), now: target(any("t", "b")), changed: ["record"] },
    { what: "the type of an Any", before: target(any("t", "a")), now: target(any("u", "a")), changed: ["record"] },
    {
      what: "something deep inside",
      before: project({ configuration: { finalized: { entries: [{ key: any("t", "k").record }] } } }),
      now: project({ configuration: { finalized: { entries: [{ key: any("t", "l").record }] } } }),
      changed: ["configuration"],
    },
    {
      what: "the order of a list",
      before: project({ targets: [{ resource_id: "1" }, { resource_id: "2" }] }),
      now: project({ targets: [{ resource_id: "2" }, { resource_id: "1" }] }),
      changed: ["targets"],
    },
    {
      what: "the order of a map",
      before: box({ metadata: { a: "1", b: { c: [1, "2"] } } }),
      now: box({ metadata: { b: { c: [1, "2"] }, a: "1" } }),
      changed: [],
    },
    {
      what: "an empty member of a list",
      before: project({ targets: [{}, {}] }),
      now: project({ targets: [{}] }),
      changed: ["targets"],
    },
    {
      what: "a oneof's other member, both empty",
      before: project({ data_source: { source: { $case: "local", value: {} } } }),
      now: project({ data_source: { source: { $case: "git", value: {} } } }),
      changed: ["data_source"],
    },
    {
      what: "fields that are not described",
      before: { ...target({}), _unknownFields: { [(58 << 3) | 2]: [Buffer.from("a")] } },
      now: {
        ...target({}),
        _unknownFields: { [(58 << 3) | 2]: [Buffer.from("b")], [(99 << 3) | 0]: [Buffer.from([1])] },
      },
      changed: ["58", "99"],
    },
  ])("compares $what", ({ before, now, changed }) => {
    const fields = (message: object): CanonicalFields => ({ ...message });
    expect(changedFields(fields(before), fields(now)).toSorted()).toEqual(changed.toSorted());
    expect(changedFields(fields(now), fields(before)).toSorted()).toEqual(changed.toSorted());
    expect(changedFields(fields(now), fields(now))).toEqual([]);
  });
});

describe("identified", () => {
  it("keeps of a reference what identifies it, and all of one that has no id", () => {
    const reference = { resource_id: "1", name: "shop" };
    const withoutId = { resource_id: "", name: "shop" };
    expect(identified(reference)).toEqual({ resource_id: "1" });
    expect(identified(withoutId)).toEqual(withoutId);
    expect(identified(undefined)).toBeUndefined();
  });
});
