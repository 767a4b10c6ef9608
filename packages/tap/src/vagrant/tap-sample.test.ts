import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from "@grpc/grpc-js";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/vagrant/recording";
import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { GetJobStreamRequest, GetJobStreamResponse } from "@tapedeck/proto/vagrant/vagrant";
import { fieldsOf } from "@tapedeck/shared/descriptors/message-fields";
import { describe, expect, it, onTestFinished } from "vitest";
import { listen, when } from "./testing/tap-listen.ts";

const samples = `${recordings.vagrant}/samples/`;
const recording = loadRecording(`${samples}up.jsonl`);
const [initJob, upJob] = ["01M7WSXR06H66N9X9VS1NTGZ87", "01M7WSXR6NFM73VJ0F879K4ZNP"];
/** Rows after which the recorder of the sample opened a stream. */
const queued = { init: 11, up: 29 };

type Tapped = ReturnType<typeof listen>;

/** What a stream of the sample gave, on the wire. */
function given(stream: string): Buffer[] {
  return recording.rows.flatMap((row) => (row.kind === "stream-message" && row.stream === stream ? [row.message] : []));
}

/** What the sample's recorder was answered at the end. */
function answers(rpc: string): Buffer[] {
  return recording.rows.flatMap((row) =>
    row.kind === "unary" && row.rpc === rpc && row.n >= 93 && row.response ? [row.response] : [],
  );
}

const hex = (messages: readonly Buffer[]) => messages.map((bytes) => bytes.toString("hex"));
const wholes = (rpc: string) => hex(answers(rpc).flatMap((answer) => fieldsOf(answer, 1)));

function openings(tapped: Tapped, job: string): string[][] {
  return [...Map.groupBy(tapped.streamed(job), ({ stream }) => stream).values()].map((messages) =>
    hex(messages.map(({ bytes }) => bytes)),
  );
}

/** The newest of a kind. */
function resourceBytes(tapped: Tapped, kind: string): string[] {
  const observations = tapped
    .resources()
    .flatMap(({ kinds }) => kinds.filter((each) => each.kind === kind && !each.same));
  return hex(observations.at(-1)?.entries.map(({ bytes }) => bytes) ?? []);
}

describe("a run of `vagrant up`", () => {
  it("is tapped as it happens", async () => {
    await using fake = await startFakeVagrant();
    const playback = fake.playSample(recording);
    await using tapped = listen(fake.address);
    await when("a look", () => tapped.resources().length > 0);
    playback.to(queued.init);
    await when("the first stream", () => tapped.streamed(initJob).length === 2);
    playback.to(queued.up);
    await when("the second stream", () => tapped.streamed(upJob).length === 2);
    await playback.run({ speed: "max" });
    await when("all ends", () => tapped.ends(initJob).length === 2 && tapped.ends(upJob).length === 2);
    // The fake puts the fields of a message into another order than Go.
    const here = (bytes: Buffer) =>
      Buffer.from(GetJobStreamResponse.encode(GetJobStreamResponse.decode(bytes)).finish());
    const expected = (stream: string) => hex(given(stream).map(here));
    expect(openings(tapped, upJob)).toEqual([expected("up-live"), expected("up-reopen")]);
    expect(openings(tapped, initJob)[0]).toEqual(expected("init-live"));
    const last = fake.call("_ListJobs", Buffer.alloc(0));
    await when("the last list", () => tapped.lists().at(-1)?.equals(last));
    await when("the last targets", () => resourceBytes(tapped, "target").join() === hex(targetsNow(fake)).join());
  });

  it("is given byte for byte", async () => {
    await using tapped = listen(await replay());
    await when("all of it", () => tapped.resources().length > 0 && tapped.ends(upJob).length === 1);
    expect(hex(tapped.lists())).toEqual(hex(answers("_ListJobs")));
    expect(openings(tapped, upJob)).toEqual([hex(given("up-reopen"))]);
    expect(resourceBytes(tapped, "target")).toEqual(wholes("GetTarget"));
    expect(resourceBytes(tapped, "project")).toEqual(wholes("GetProject"));
    expect(resourceBytes(tapped, "box")).toEqual(wholes("GetBox"));
    expect(resourceBytes(tapped, "runner")).toEqual(hex(answers("GetRunner")));
    for (const rpc of ["GetTarget", "GetProject", "GetBox"]) expect(wholes(rpc).length).toBeGreaterThan(0);
  });
});

function targetsNow(fake: Awaited<ReturnType<typeof startFakeVagrant>>): Buffer[] {
  const requests = recording.rows.flatMap((row) =>
    row.rpc === "GetTarget" && row.kind === "unary" && row.n >= 93 ? [row.request] : [],
  );
  return requests.flatMap((request) => fieldsOf(fake.call("GetTarget", request), 1));
}

/** A server that answers what the real one answered at the end, in its very bytes. */
async function replay(): Promise<string> {
  const same = (bytes: Buffer) => bytes;
  const server = new Server();
  const calls = ["GetVersionInfo", "_ListJobs", "ListTargets", "GetTarget", "ListProjects", "GetProject"];
  const method = (rpc: string, responseStream: boolean) => ({
    path: `/hashicorp.vagrant.Vagrant/${rpc}`,
    requestStream: false,
    responseStream,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  });
  const unary = [...calls, "ListBasis", "ListBoxes", "GetBox", "GetRunner"];
  const methods = unary.map((rpc) => [rpc, method(rpc, false)] as const);
  const service = Object.fromEntries([...methods, ["GetJobStream", method("GetJobStream", true)]]);
  const answer = (rpc: string) => (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
    const rows = recording.rows.flatMap((row) =>
      row.kind === "unary" && row.rpc === rpc && row.response ? [row] : [],
    );
    // The recorder's requests said more than an id.
    const [id = ""] = /[0-9A-Z]{26}/.exec(call.request.toString("latin1")) ?? [];
    reply(null, rows.findLast(({ request }) => request.includes(id))?.response ?? Buffer.alloc(0));
  };
  server.addService(service, {
    ...Object.fromEntries(unary.map((rpc) => [rpc, answer(rpc)])),
    GetJobStream: (call: ServerWritableStream<Buffer, Buffer>) => {
      const isUp = GetJobStreamRequest.decode(call.request).job_id === upJob;
      for (const message of isUp ? given("up-reopen") : []) call.write(message);
      call.end();
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    const bound = (error: Error | null, on: number) => (error ? reject(error) : resolve(on));
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), bound);
  });
  onTestFinished(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}
