import type { JsonObject } from "@bufbuild/protobuf";
import {
  Basis,
  Box,
  FindBasisResponse,
  FindBoxResponse,
  FindProjectResponse,
  FindTargetResponse,
  GetBasisResponse,
  GetVersionInfoResponse,
  Job,
  ListBasisResponse,
  ListJobsResponse,
  Project,
  Target,
} from "@tapedeck/proto/vagrant/vagrant";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sampleCalls, within } from "./testing/sample.ts";
import { type Harness, vagrantHarness } from "./testing/vagrant-harness.ts";

let on: Harness;
beforeAll(async () => {
  on = await vagrantHarness();
});
afterAll(() => on[Symbol.asyncDispose]());

type Codec<T> = { encode(message: T): { finish(): Uint8Array }; decode(bytes: Uint8Array): T };

/** Records by their resource_id, as query has them. */
function keyed<T extends { resource_id: string }>(type: Codec<T>, ...records: readonly Uint8Array[]) {
  return Object.fromEntries(records.map((bytes) => [type.decode(bytes).resource_id, bytes]));
}
function made<T extends { resource_id: string }>(type: Codec<T>, ...records: readonly T[]) {
  return keyed(type, ...records.map((record) => type.encode(record).finish()));
}

describe("answers are a real server's, byte for byte", () => {
  const calls = sampleCalls();
  const wires = (rpc: string) => calls.flatMap((call) => (call.rpc === rpc && call.wire ? [call.wire] : []));
  const records = (rpc: string) => wires(rpc).flatMap(within);

  beforeAll(() => {
    const [runner = Buffer.alloc(0)] = wires("GetRunner");
    const jobs = within(wires("_ListJobs").at(-1));
    on.hold("version", { version: wires("GetVersionInfo")[0] ?? Buffer.alloc(0) });
    on.hold("projects", keyed(Project, ...records("GetProject")));
    on.hold("targets", keyed(Target, ...records("GetTarget").slice(-2)));
    on.hold("boxes", keyed(Box, ...records("GetBox")));
    on.hold("runners", { "01M7WSXQZS1K6ZCYSAATXY98MQ": runner });
    on.hold("jobs", Object.fromEntries(jobs.map((job) => [Job.decode(job).id, job])));
  });

  /** After the command's end, as what is held. */
  const reads = calls.filter(({ n, rpc, wire }) => wire !== undefined && (n >= 86 || rpc === "GetVersionInfo"));

  it("for ten kinds of calls", () => expect(new Set(reads.map(({ rpc }) => rpc)).size).toBe(10));

  it.each(reads)("$rpc ($n)", async ({ rpc, request, wire }) => {
    expect(await on.call(rpc, request)).toEqual(wire);
  });

  it.each<[string, JsonObject]>([
    ["GetBasis", { basis: { resource_id: "B" } }],
    ["FindBasis", { basis: { resource_id: "B" } }],
    ["GetTarget", { target: { resource_id: "T" } }],
    ["FindTarget", { target: { resource_id: "T" } }],
    ["GetProject", { project: { resource_id: "P" } }],
    ["GetBox", { box: { resource_id: "X" } }],
  ])("%s reads only the record that it names", async (rpc, request) => {
    await on.call(rpc, request).catch(() => {});
    const [ref] = Object.values(request) as { resource_id: string }[];
    expect(on.requests.at(-1)).toMatchObject({ key_prefix: ref?.resource_id });
  });

  it("fields that Tapedeck does not know stay in them", async () => {
    const unknown = Buffer.from([0xfa, 0x3f, 0x02, 0x68, 0x69]); // field 1023
    const basis = Buffer.concat([Basis.encode(Basis.fromPartial({ resource_id: "B" })).finish(), unknown]);
    on.hold("bases", { B: basis });
    expect(within(await on.call("GetBasis", { basis: { resource_id: "B" } }))).toEqual([basis]);
    expect(within(await on.call("FindBasis", { basis: { resource_id: "B" } }))).toEqual([basis]);
  });
});

describe("records", () => {
  const home = Basis.fromPartial({ resource_id: "B1", name: "default", path: "/home" });
  const work = Basis.fromPartial({ resource_id: "B2", name: "work", path: "/work" });
  const shop1 = Project.fromPartial({ resource_id: "P1", name: "shop", path: "/a/shop", basis: { resource_id: "B1" } });
  const shop2 = Project.fromPartial({ resource_id: "P2", name: "shop", path: "/b/shop", basis: { resource_id: "B2" } });
  const target = (resource_id: string, name: string, project: Project, uuid = "") =>
    Target.fromPartial({ resource_id, name, uuid, project: { resource_id: project.resource_id } });
  const box = (resource_id: string, version: string, provider = "virtualbox") =>
    Box.fromPartial({ resource_id, name: "bionic64", version, provider });

  beforeAll(() => {
    on.hold("bases", made(Basis, home, work));
    on.hold("projects", made(Project, shop1, shop2));
    on.hold("targets", made(Target, target("T1", "web", shop1, "Abc-1"), target("T2", "web", shop2, "abc-12")));
    on.hold(
      "boxes",
      made(Box, box("X1", "1.0.282"), box("X2", "2.0.0"), box("X3", "3.0.0-rc1"), box("X4", "0.0.0", "libvirt")),
    );
    on.hold("runners", {});
    on.hold("jobs", { J1: Job.encode(Job.fromPartial({ id: "J1" })).finish() });
  });

  const finders = {
    FindBasis: (bytes: Buffer) => FindBasisResponse.decode(bytes).basis,
    FindProject: (bytes: Buffer) => FindProjectResponse.decode(bytes).project,
    FindTarget: (bytes: Buffer) => FindTargetResponse.decode(bytes).target,
    FindBox: (bytes: Buffer) => FindBoxResponse.decode(bytes).box,
    GetBasis: (bytes: Buffer) => GetBasisResponse.decode(bytes).basis,
  };
  type Finder = keyof typeof finders;
  const basis = { resource_id: "B2" };

  it.each<[Finder, string, JsonObject, string | undefined]>([
    ["GetBasis", "goes by resource_id alone", { basis: { resource_id: "B1", name: "work" } }, "B1"],
    ["FindBasis", "goes by resource_id before all", { basis: { resource_id: "B1", name: "work" } }, "B1"],
    ["FindBasis", "by name", { basis: { name: "work" } }, "B2"],
    ["FindBasis", "by path", { basis: { path: "/home" } }, "B1"],
    ["FindBasis", "by name and path", { basis: { name: "work", path: "/work" } }, "B2"],
    ["FindProject", "of the first of that name, whatever its basis", { project: { basis, name: "shop" } }, "P1"],
    ["FindProject", "by path", { project: { basis, path: "/b/shop" } }, "P2"],
    ["FindTarget", "by resource_id", { target: { resource_id: "T2", name: "no" } }, "T2"],
    ["FindTarget", "by project and name", { target: { project: { resource_id: "P2" }, name: "web" } }, "T2"],
    ["FindTarget", "by a part of the uuid, the first, in whatever case", { target: { uuid: "ABC-1" } }, "T1"],
    ["FindTarget", "by a part of the uuid without a project", { target: { uuid: "c-12", name: "web" } }, "T2"],
    ["FindBox", "by resource_id", { box: { resource_id: "X4" } }, "X4"],
    ["FindBox", "the newest of the name", { box: { name: "bionic64" } }, "X2"],
    ["FindBox", "the newest that fits", { box: { name: "bionic64", version: "< 2" } }, "X1"],
    ["FindBox", "of one version", { box: { name: "bionic64", version: "1.0.282", provider: "virtualbox" } }, "X1"],
    ["FindBox", "of one version, without a provider", { box: { name: "bionic64", version: "0.0.0" } }, "X4"],
    ["FindBox", "of a pre-release that is named", { box: { name: "bionic64", version: "3.0.0-rc1" } }, "X3"],
    ["FindBox", "none of the provider", { box: { name: "bionic64", provider: "hyperv" } }, undefined],
    ["FindBox", "none above 0", { box: { name: "bionic64", provider: "libvirt" } }, undefined],
    ["FindBox", "none of the name", { box: { name: "jammy" } }, undefined],
    ["FindBox", "none of the version", { box: { name: "bionic64", version: "1.0" } }, undefined],
  ])("%s: %s", async (rpc, _, request, found) => {
    expect(finders[rpc](await on.call(rpc, request))?.resource_id).toBe(found);
  });

  const nobody = (kind: string) => [5, `failed to locate ${kind} (record not found)`] as const;
  const nil = (name: string) => [9, `${name}: cannot be nil`] as const;
  const homeless = (kind: string) => [9, `cannot lookup ${kind} (proto reference does not include parent)`] as const;
  const shop = { resource_id: "P9", name: "shop" };

  it.each<[string, JsonObject, readonly [number, string]]>([
    ["GetBasis", {}, nil("basis")],
    ["GetBasis", { basis: {} }, nobody("basis")],
    ["GetBasis", { basis: { name: "work" } }, nobody("basis")],
    ["FindBasis", {}, nil("basis")],
    ["FindBasis", { basis: {} }, nobody("basis")],
    ["FindBasis", { basis: { resource_id: "B9", name: "work" } }, nobody("basis")],
    ["FindBasis", { basis: { name: "work", path: "/home" } }, nobody("basis")],
    ["GetProject", {}, nil("project")],
    ["GetProject", { project: shop }, nobody("project")],
    ["FindProject", {}, nil("project")],
    ["FindProject", { project: { name: "shop" } }, nil("basis")],
    ["FindProject", { project: { basis } }, nobody("project")],
    ["FindProject", { project: { basis, resource_id: "P1" } }, nobody("project")],
    ["FindProject", { project: { basis, name: "shop", path: "/c" } }, nobody("project")],
    ["GetTarget", {}, nil("target")],
    ["GetTarget", { target: { name: "web" } }, nobody("target")],
    ["FindTarget", {}, nil("target")],
    ["FindTarget", { target: {} }, nobody("target")],
    ["FindTarget", { target: { name: "web" } }, homeless("target")],
    ["FindTarget", { target: { resource_id: "T9", uuid: "abc-1" } }, nobody("target")],
    ["FindTarget", { target: { project: { resource_id: "P2" }, uuid: "abc-1" } }, nobody("target")],
    ["FindTarget", { target: { project: { resource_id: "P2" }, name: "db", uuid: "abc-1" } }, nobody("target")],
    ["GetBox", {}, nil("box")],
    ["GetBox", { box: { name: "bionic64" } }, nobody("box")],
    ["FindBox", {}, nil("box")],
    ["FindBox", { box: { resource_id: "X9" } }, nobody("box")],
    ["FindBox", { box: {} }, [13, "name: cannot be blank."]],
    ["FindBox", { box: { name: "bionic64", version: "newest" } }, [13, "Malformed constraint: newest"]],
    ["GetRunner", { runner_id: "R9" }, nobody("runner")],
    ["GetRunner", {}, nobody("runner")],
    ["GetJob", { job_id: "J9" }, [5, "job not found"]],
    ["GetJob", { job_id: "J" }, [5, "job not found"]],
    ["GetJob", {}, [5, "job not found"]],
  ])("%s of %j is refused as Vagrant does", async (rpc, request, [code, message]) => {
    await expect(on.call(rpc, request)).rejects.toMatchObject({ name: "UpstreamError", code, message });
  });

  it.each(["GetBasis", "FindTarget", "GetJob", "GetRunner"])("%s refuses bytes that are no request", async (rpc) => {
    const refused = { name: "UpstreamError", code: 13, message: "grpc: error unmarshalling request" };
    await expect(on.call(rpc, Buffer.from([0x0a, 0x05]))).rejects.toMatchObject(refused);
  });

  it("are listed as refs, in the upstream's order", async () => {
    expect(ListBasisResponse.decode(await on.call("ListBasis")).basis).toMatchObject([
      { resource_id: "B1", name: "default", path: "/home" },
      { resource_id: "B2", name: "work", path: "/work" },
    ]);
  });
});

describe("the source of a call", () => {
  it("source, session and moment go to query with every read", async () => {
    const rpcs = ["GetVersionInfo", "ListBasis", "ListProjects", "ListTargets", "ListBoxes", "_ListJobs"];
    for (const rpc of rpcs) await on.call(rpc, {}, { at: "x-5", session: "01A", minPosition: "x-3" });
    await on.call("GetJob", { job_id: "J1" }, { at: "x-5", session: "01A", minPosition: "x-3" });
    const meant = { at: "x-5", session: "01A", min_position: "x-3", source: "default/alice/shop/vagrant" };
    expect(on.requests.slice(-7)).toEqual(Array(7).fill(expect.objectContaining(meant)));
    expect(on.requests.at(-1)).toMatchObject({ collection: "vagrant.jobs", key_prefix: "J1" });
  });

  it("a job without an id is not asked for: every id begins with it", async () => {
    on.requests.length = 0;
    await expect(on.call("GetJob", {})).rejects.toMatchObject({ code: 5, message: "job not found" });
    expect(on.requests).toEqual([]);
  });

  it("the position and session of an answer go with it", async () => {
    on.session("01A", { ended: true });
    const { head } = await on.api.unary.listJobs(new Uint8Array(), on.context());
    expect(head).toEqual({ position: on.position(7), session: "01A", sessionEnded: true, heardAt: {} });
  });

  it("a source without any record yet speaks the protocol of all and has no jobs", async () => {
    for (const collection of ["version", "jobs"] as const) on.hold(collection, {});
    expect(GetVersionInfoResponse.decode(await on.call("GetVersionInfo")).info).toMatchObject({
      api: { current: 1, minimum: 1 },
      version: "",
    });
    expect(ListJobsResponse.decode(await on.call("_ListJobs")).jobs).toEqual([]);
  });

  it("an unknown source is Tapedeck's own error", async () => {
    const pending = on.call("_ListJobs", {}, { source: "bob/shop/vagrant" });
    await expect(pending).rejects.toMatchObject({ name: "TapedeckError", code: "unknown_source" });
  });
});
