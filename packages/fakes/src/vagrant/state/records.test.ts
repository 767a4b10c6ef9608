import { status } from "@grpc/grpc-js";
import {
  Basis,
  Box,
  Operation_PhysicalState as PhysicalState,
  Project,
  Target,
  Target_Machine,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { describe, expect, it } from "vitest";
import { connectTo } from "../client.ts";
import { startFakeVagrant } from "../server.ts";
import { setUpShop } from "../shop.ts";

const service = VagrantService;
const { NOT_FOUND, FAILED_PRECONDITION, INTERNAL } = status;

async function shop(generation?: "2.3" | "2.4") {
  const fake = await startFakeVagrant(generation && { generation });
  const client = connectTo(fake);
  const ids = setUpShop(fake);

  /** The code that a call ends with. */
  async function code<Q>(method: { path: string; requestSerialize: (request: Q) => Buffer }, request: Q) {
    const name = method.path.slice(method.path.lastIndexOf("/") + 1);
    return (await client.raw(name, method.requestSerialize(request))).code;
  }

  return {
    ...ids,
    fake,
    call: client.call,
    code,
    [Symbol.asyncDispose]: async () => {
      client[Symbol.dispose]();
      await fake[Symbol.asyncDispose]();
    },
  };
}

const basisRef = { resource_id: "", name: "", path: "" };
const path = "/home/dev/.config/vagrant/default";

function record(id: string) {
  const machine = { id, uid: "1000", state: { id: "running", short_description: "", long_description: "" } };
  const value = Buffer.from(Target_Machine.encode(machine).finish());
  return { type_url: "type.googleapis.com/hashicorp.vagrant.Target.Machine", value };
}

describe("a basis", () => {
  it("is got by its id only, and found by name and path", async () => {
    await using it = await shop();
    const basis = { resource_id: it.basis, name: "default", path };
    expect((await it.call(service.getBasis, { basis: { ...basisRef, resource_id: it.basis } })).basis).toMatchObject({
      ...basis,
      projects: [{ resource_id: it.project, name: "shop" }],
    });
    expect(await it.code(service.getBasis, { basis: { ...basisRef, name: "default" } })).toBe(NOT_FOUND);
    expect(await it.code(service.getBasis, {})).toBe(FAILED_PRECONDITION);
    const found = (expected: Partial<Basis>) => it.call(service.findBasis, { basis: Basis.fromPartial(expected) });
    for (const expected of [{ resource_id: it.basis }, { name: "default" }, { path }, { name: "default", path }]) {
      expect((await found(expected)).basis).toMatchObject(basis);
    }
    const other = { basis: Basis.fromPartial({ name: "default", path: "/elsewhere" }) };
    expect(await it.code(service.findBasis, other)).toBe(NOT_FOUND);
    expect(await it.code(service.findBasis, { basis: Basis.fromPartial({}) })).toBe(NOT_FOUND);
    expect((await it.call(service.listBasis, {})).basis).toEqual([expect.objectContaining(basis)]);
  });

  it("is made once for each name and path, and changed by its id, field by field", async () => {
    await using it = await shop();
    const codeOf = (basis: Partial<Basis>) =>
      it.code(service.upsertBasis, { basis: { ...Basis.fromPartial({}), ...basis } });
    expect(await codeOf({ name: "default", path: "/other" })).toBe(INTERNAL);
    expect(await codeOf({ name: "other", path })).toBe(INTERNAL);
    expect(await codeOf({ name: "", path: "/other" })).toBe(INTERNAL);
    expect(await codeOf({ name: "other" })).toBe(INTERNAL);
    expect(await codeOf({ name: "other", path: "/other", metadata: { metadata: { a: "b" } } })).toBe(INTERNAL);
    expect(await it.code(service.upsertBasis, {})).toBe(FAILED_PRECONDITION);
    const renamed = Basis.fromPartial({ resource_id: it.basis, name: "renamed" });
    expect((await it.call(service.upsertBasis, { basis: renamed })).basis).toMatchObject({ name: "renamed", path });
  });
});

describe("a project", () => {
  it("needs a basis when it is made, and keeps it", async () => {
    await using it = await shop();
    const project = Project.fromPartial({ name: "blog", path: "/home/dev/blog" });
    expect(await it.code(service.upsertProject, { project })).toBe(FAILED_PRECONDITION);
    const nowhere = { ...project, basis: { ...basisRef, resource_id: "nobody" } };
    expect(await it.code(service.upsertProject, { project: nowhere })).toBe(NOT_FOUND);
    const taken = { ...project, name: "shop", basis: { ...basisRef, resource_id: it.basis } };
    expect(await it.code(service.upsertProject, { project: taken })).toBe(INTERNAL);
    const moved = Project.fromPartial({ resource_id: it.project, path: "/new", basis: { resource_id: "nobody" } });
    expect((await it.call(service.upsertProject, { project: moved })).project).toMatchObject({
      name: "shop",
      path: "/new",
      basis: { resource_id: it.basis, name: "default" },
    });
  });

  it("is found in whatever basis, but a basis must be named", async () => {
    await using it = await shop();
    const expected = Project.fromPartial({ name: "shop" });
    expect(await it.code(service.findProject, { project: expected })).toBe(FAILED_PRECONDITION);
    const elsewhere = { ...expected, basis: { ...basisRef, name: "another" } };
    expect((await it.call(service.findProject, { project: elsewhere })).project?.resource_id).toBe(it.project);
    const nameless = { ...elsewhere, name: "", resource_id: it.project };
    expect(await it.code(service.findProject, { project: nameless })).toBe(NOT_FOUND);
    const ref = { resource_id: "", path: "", name: "shop" };
    expect(await it.code(service.getProject, { project: ref })).toBe(NOT_FOUND);
    const { projects } = await it.call(service.listProjects, {});
    expect(projects).toMatchObject([{ resource_id: it.project, basis: { resource_id: it.basis, path } }]);
  });
});

describe("a target", () => {
  it("is its own parent once it was stored", async () => {
    await using it = await shop();
    const target = Target.fromPartial({ name: "web1", project: { resource_id: it.project } });
    const made = (await it.call(service.upsertTarget, { target })).target;
    expect(made?.parent).toBeUndefined();
    const id = made?.resource_id ?? "";
    const parent = { resource_id: id, name: "web1" };
    const got = await it.call(service.getTarget, { target: { resource_id: id, name: "" } });
    expect(got.target).toMatchObject({ parent, project: { name: "shop", basis: { name: "default" } } });
    const again = await it.call(service.upsertTarget, { target: got.target });
    expect(again.target).toMatchObject({ parent });
    const { targets } = await it.call(service.listTargets, {});
    expect(targets).toMatchObject([{ resource_id: id, name: "web1", project: { name: "shop", basis: undefined } }]);
  });

  it("is found by id, by project and name, or by a part of its uuid", async () => {
    await using it = await shop();
    const id = it.target({ name: "web1", uuid: "4f1d0c30-8a52" });
    const found = async (expected: Partial<Target>) =>
      (await it.call(service.findTarget, { target: { ...Target.fromPartial({}), ...expected } })).target?.resource_id;
    expect(await found({ resource_id: id })).toBe(id);
    expect(await found({ name: "web1", project: { resource_id: it.project, path: "", name: "" } })).toBe(id);
    expect(await found({ uuid: "0c30" })).toBe(id);
    const withoutProject = { target: Target.fromPartial({ name: "web1" }) };
    expect(await it.code(service.findTarget, withoutProject)).toBe(FAILED_PRECONDITION);
    expect(await it.code(service.findTarget, { target: Target.fromPartial({}) })).toBe(NOT_FOUND);
    const byName = { target: { resource_id: "", name: "web1" } };
    expect(await it.code(service.getTarget, byName)).toBe(NOT_FOUND);
    expect(await it.code(service.getTarget, {})).toBe(FAILED_PRECONDITION);
  });

  it("takes an id that the client made up, and always the state, also an unknown one", async () => {
    await using it = await shop();
    const id = it.target({ resource_id: "MINE", name: "web1", provider: "virtualbox", state: PhysicalState.CREATED });
    expect(id).toBe("MINE");
    expect(it.target({ name: "web1" })).toBe("MINE");
    const { target } = await it.call(service.getTarget, { target: { resource_id: id, name: "" } });
    expect(target).toMatchObject({ state: PhysicalState.UNKNOWN, provider: "virtualbox" });
    const homeless = {
      target: Target.fromPartial({ name: "web2" }),
      project: { resource_id: it.project, path: "", name: "" },
    };
    expect(await it.code(service.upsertTarget, homeless)).toBe(FAILED_PRECONDITION);
    const nameless = { target: Target.fromPartial({ project: { resource_id: it.project } }) };
    expect(await it.code(service.upsertTarget, nameless)).toBe(INTERNAL);
    const twin = {
      target: Target.fromPartial({ resource_id: "X", name: "web1", project: { resource_id: it.project } }),
    };
    expect(await it.code(service.upsertTarget, twin)).toBe(INTERNAL);
  });

  it.each([
    ["2.3", "first"],
    ["2.4", "second"],
  ] as const)("of v%s keeps the %s record that it was given", async (generation, kept) => {
    await using it = await shop(generation);
    it.target({ name: "web1", record: record("first") });
    const id = it.target({ name: "web1", record: record("second"), state: PhysicalState.CREATED });
    const { target } = await it.call(service.getTarget, { target: { resource_id: id, name: "" } });
    expect(target?.state).toBe(PhysicalState.CREATED);
    expect(target?.record).toMatchObject(record(kept));
  });

  it("that does not exist is scrubbed with the command, and comes back with another id", async () => {
    await using it = await shop();
    const states = Object.values(PhysicalState).filter((state) => state >= 0);
    for (const state of states) it.target({ name: `web${state}`, state });
    const before = it.target({ name: `web${PhysicalState.DESTROYED}`, state: PhysicalState.DESTROYED });
    it.fake.scrub();
    const { targets } = await it.call(service.listTargets, {});
    const removed: number[] = [PhysicalState.DESTROYED, PhysicalState.NOT_CREATED];
    expect(targets.map(({ name }) => name)).toEqual(
      states.filter((state) => !removed.includes(state)).map((state) => `web${state}`),
    );
    expect(it.target({ name: `web${PhysicalState.DESTROYED}` })).not.toBe(before);
  });

  it("is deleted by id; one that is not there is too", async () => {
    await using it = await shop();
    const id = it.target({ name: "web1" });
    expect(await it.code(service.deleteTarget, { target: { resource_id: "nobody", name: "web1" } })).toBe(0);
    expect((await it.call(service.listTargets, {})).targets).toHaveLength(1);
    expect(await it.code(service.deleteTarget, { target: { resource_id: id, name: "" } })).toBe(0);
    expect((await it.call(service.listTargets, {})).targets).toEqual([]);
    expect(await it.code(service.deleteTarget, {})).toBe(FAILED_PRECONDITION);
  });

  it("with another parent spoils that one", async () => {
    await using it = await shop();
    const parent = it.target({ name: "web1" });
    it.target({ name: "web2", parent: { resource_id: parent, name: "web1", project: undefined } });
    expect(await it.code(service.getTarget, { target: { resource_id: parent, name: "" } })).toBe(NOT_FOUND);
  });
});

describe("a box", () => {
  const bionic = { name: "hashicorp/bionic64", provider: "virtualbox" };
  const box = (version: string) => Box.fromPartial({ ...bionic, version, directory: `/boxes/${version}` });
  const ref = { resource_id: "", name: "", version: "", provider: "" };

  it("is answered as it was sent when it is stored, and was updated in 1970 when it is read", async () => {
    await using it = await shop();
    const stored = (await it.call(service.upsertBox, { box: box("0") })).box;
    expect(stored).toMatchObject({ resource_id: "", version: "0" });
    expect(Number(stored?.last_update?.seconds)).toBeGreaterThan(1e9);
    const { boxes } = await it.call(service.listBoxes, {});
    expect(boxes).toMatchObject([{ ...bionic, version: "0.0.0" }]);
    const got = (await it.call(service.getBox, { box: boxes[0] })).box;
    expect(got).toMatchObject({ directory: "/boxes/0", last_update: { seconds: 0n, nanos: 0 } });
    expect(await it.code(service.getBox, { box: { ...ref, name: bionic.name } })).toBe(NOT_FOUND);
  });

  it("needs directory, name and provider, which with the version are unique", async () => {
    await using it = await shop();
    await it.call(service.upsertBox, { box: box("1.0") });
    const wrong = [
      { ...box("2.0"), directory: "" },
      { ...box("2.0"), name: "" },
      { ...box("2.0"), provider: "" },
      { ...box("2.0"), directory: "/boxes/1.0" },
      { ...box("1.0"), directory: "/elsewhere" },
    ];
    for (const each of wrong) expect(await it.code(service.upsertBox, { box: each })).toBe(INTERNAL);
  });

  it("is found by id, by exact version, and wrongly by a condition", async () => {
    await using it = await shop();
    for (const version of ["1.0", "2.0", "3.0.0"]) await it.call(service.upsertBox, { box: box(version) });
    const found = async (expected: Partial<typeof ref>) =>
      (await it.call(service.findBox, { box: { ...ref, ...expected } })).box?.version;
    expect(await found({ ...bionic, version: "2.0" })).toBe("2.0");
    expect(await found({ ...bionic, version: "4.0" })).toBeUndefined();
    expect(await found({ ...bionic, version: "< 2" })).toBe("3.0.0");
    expect(await found({ ...bionic, version: ">= 1.5, < 2.5" })).toBe("3.0.0");
    expect(await found({ ...bionic, version: "~> 1.0" })).toBe("3.0.0");
    expect(await found({ ...bionic, version: "> 3" })).toBeUndefined();
    expect(await found({ name: bionic.name })).toBe("3.0.0");
    expect(await found({ name: "nobody" })).toBeUndefined();
    expect(await it.code(service.findBox, { box: { ...ref, provider: "virtualbox" } })).toBe(INTERNAL);
    expect(await it.code(service.findBox, { box: { ...ref, resource_id: "nobody" } })).toBe(NOT_FOUND);
  });

  it("is deleted, or not, and all is well", async () => {
    await using it = await shop();
    await it.call(service.upsertBox, { box: box("1.0") });
    expect(await it.code(service.deleteBox, {})).toBe(0);
    expect(await it.code(service.deleteBox, { box: { ...ref, resource_id: "nobody" } })).toBe(0);
    const [stored] = (await it.call(service.listBoxes, {})).boxes;
    expect(await it.code(service.deleteBox, { box: stored })).toBe(0);
    expect((await it.call(service.listBoxes, {})).boxes).toEqual([]);
  });
});
