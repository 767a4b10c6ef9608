import {
  type CallOptions,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { line, textOf } from "@tapedeck/fakes/vagrant/client";
import { commandResult, upJob } from "@tapedeck/fakes/vagrant/shop";
import {
  Basis,
  Box,
  type DeepPartial,
  type GetJobStreamResponse,
  Job,
  Job_State,
  Operation_PhysicalState,
  Project,
  Runner,
  RunnerJobStreamRequest,
  type RunnerJobStreamResponse,
  Target,
  VagrantClient,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { ulid } from "ulid";
import { expect } from "vitest";

/** What the tests call: one address, whatever listens there, with an unmodified client. */
export type ServerUnderTest = Disposable & {
  readonly call: <Q, A>(method: Unary<Q, A>, request: Q) => Promise<A>;
  readonly client: VagrantClient;
  readonly metadata: () => Metadata;
};

type Unary<Q, A> = {
  readonly path: string;
  readonly requestSerialize: (request: Q) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => A;
};

export function serverUnderTest(address: string): ServerUnderTest {
  const client = new VagrantClient(address, credentials.createInsecure());
  const metadata = () => {
    const sent = new Metadata();
    sent.set("client-api-protocol", "1,1");
    return sent;
  };
  return {
    client,
    metadata,
    call: <Q, A>({ path, requestSerialize, responseDeserialize }: Unary<Q, A>, request: Q) =>
      new Promise<A>((resolve, reject) => {
        const options: CallOptions = { deadline: Date.now() + 60_000 };
        const done = (error: ServiceError | null, answer?: A) => (error ? reject(error) : resolve(answer as A));
        client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata(), options, done);
      }),
    [Symbol.dispose]: () => client.close(),
  };
}

const { upsertBasis, getBasis, findBasis, listBasis } = VagrantService;
const { upsertProject, getProject, findProject, listProjects } = VagrantService;
const { upsertTarget, getTarget, findTarget, listTargets, deleteTarget } = VagrantService;
const { upsertBox, getBox, findBox, listBoxes, queueJob, getJob, validateJob, cancelJob } = VagrantService;

const notFound = { code: status.NOT_FOUND };

async function newBasis({ call }: ServerUnderTest): Promise<Basis> {
  const name = ulid();
  const { basis } = await call(upsertBasis, { basis: Basis.fromPartial({ name, path: `/home/dev/${name}` }) });
  return basis ?? Basis.create();
}

const refOf = ({ resource_id, name, path }: Basis | Project) => ({ resource_id, name, path });

async function newProject(server: ServerUnderTest): Promise<Project> {
  const basis = await newBasis(server);
  const name = ulid();
  const project = Project.fromPartial({ name, path: `/home/dev/${name}`, basis: refOf(basis) });
  return (await server.call(upsertProject, { project })).project ?? Project.create();
}

/** Registers a runner, which leaves at the end of the test. */
async function newRunner({ client, metadata }: ServerUnderTest) {
  const runner = Runner.fromPartial({ id: ulid(), by_id_only: true });
  const config = client.runnerConfig(metadata());
  config.on("error", () => {});
  const configured = new Promise((resolve, reject) => config.once("data", resolve).once("error", reject));
  config.write({ event: { $case: "open", value: { runner } } });
  await configured;
  return { id: runner.id, [Symbol.dispose]: () => config.cancel() };
}

async function newJob(server: ServerUnderTest, runner: string, expires_in = ""): Promise<string> {
  const { resource_id: project } = await newProject(server);
  const { job_id } = await server.call(queueJob, { job: upJob({ project, runner }), expires_in });
  return job_id;
}

/** Sends a runner's messages on RunnerJobStream, and takes the answers one by one. */
function jobStreamOf({ client, metadata }: ServerUnderTest) {
  const call: ClientDuplexStream<RunnerJobStreamRequest, RunnerJobStreamResponse> = client.runnerJobStream(metadata());
  call.on("error", () => {});
  const ended = new Promise<{ readonly code: number }>((resolve) => call.on("status", resolve));
  const messages = call[Symbol.asyncIterator]();
  return {
    send: (event: DeepPartial<NonNullable<RunnerJobStreamRequest["event"]>>) =>
      void call.write(RunnerJobStreamRequest.fromPartial({ event })),
    next: async () => (await messages.next()).value?.event as RunnerJobStreamResponse["event"],
    /** Resolves with the status when the server has ended the stream; nothing else may come before. */
    async end() {
      const next = await messages.next().catch(() => ({ done: true }));
      expect(next.done).toBe(true);
      return (await ended).code;
    },
  };
}

/** A job that a runner has taken. */
async function runningJob(server: ServerUnderTest, runner: string) {
  const job = await newJob(server, runner);
  const stream = jobStreamOf(server);
  stream.send({ $case: "request", value: { runner_id: runner } });
  expect(await stream.next()).toMatchObject({ $case: "assignment", value: { job: { id: job } } });
  stream.send({ $case: "ack", value: {} });
  // Calls and messages of a stream may overtake each other.
  await inState(server, job, Job_State.RUNNING);
  return { job, stream };
}

async function listen({ client, metadata }: ServerUnderTest, job_id: string) {
  const messages = client.getJobStream({ job_id }, metadata())[Symbol.asyncIterator]();
  const next = async () => (await messages.next()).value?.event as GetJobStreamResponse["event"];
  const rest = async () => {
    const events: NonNullable<GetJobStreamResponse["event"]>[] = [];
    for (let event = await next(); event !== undefined; event = await next()) events.push(event);
    return events;
  };
  /** The next event of this kind; states may come before it. */
  const until = async (kind: string) => {
    for (;;) {
      const event = await next();
      if (event?.$case === kind) return event;
      expect(event?.$case).toBe("state");
    }
  };
  return { next, rest, until };
}

const stateOf = async ({ call }: ServerUnderTest, job_id: string) => (await call(getJob, { job_id })).state;

/** On a busy machine Tapedeck passes the end of a stream on before its effect is recorded (see ControlReply.effect_ms). */
const inState = (server: ServerUnderTest, job: string, state: Job_State) =>
  until(async () => (await stateOf(server, job)) === state, { message: `job ${job} to be in state ${state}` });

/** What Vagrant's own tests of its server check. No test waits between a write and what reads it. */
export const serverTests: Readonly<Record<string, (server: ServerUnderTest) => Promise<void>>> = {
  async Basis(server) {
    const { call } = server;
    const basis = await newBasis(server);
    expect((await call(getBasis, { basis: refOf(basis) })).basis).toMatchObject({ name: basis.name });
    await expect(call(getBasis, { basis: refOf(Basis.fromPartial({ resource_id: ulid() })) })).rejects.toMatchObject(
      notFound,
    );
    const found = await call(findBasis, { basis: Basis.fromPartial({ name: basis.name }) });
    expect(found.basis).toMatchObject({ resource_id: basis.resource_id });
    expect((await call(listBasis, {})).basis).toContainEqual(expect.objectContaining(refOf(basis)));
    const renamed = { ...basis, name: ulid() };
    await call(upsertBasis, { basis: renamed });
    expect((await call(getBasis, { basis: refOf(basis) })).basis).toMatchObject({ name: renamed.name });
  },

  async Project(server) {
    const { call } = server;
    const project = await newProject(server);
    expect((await call(getProject, { project: refOf(project) })).project).toMatchObject({ name: project.name });
    const orphan = Project.fromPartial({ name: ulid(), path: `/home/dev/${ulid()}` });
    await expect(call(upsertProject, { project: orphan })).rejects.toMatchObject({
      details: expect.stringMatching(/basis/i),
    });
    const unknown = Project.fromPartial({ resource_id: ulid() });
    await expect(call(getProject, { project: refOf(unknown) })).rejects.toMatchObject(notFound);
    const { name, basis } = project;
    const found = await call(findProject, { project: Project.fromPartial({ name, basis: basis ?? {} }) });
    expect(found.project).toMatchObject({ resource_id: project.resource_id });
    const listed = (await call(listProjects, {})).projects.map(({ resource_id }) => resource_id);
    expect(listed).toContain(project.resource_id);
  },

  async Target(server) {
    const { call } = server;
    const project = await newProject(server);
    const state = Operation_PhysicalState.CREATED;
    const given = Target.fromPartial({ name: "web", project: refOf(project), state });
    const { target = Target.create() } = await call(upsertTarget, { target: given, project: undefined });
    const ref = { resource_id: target.resource_id, name: "web" };
    const get = async () => (await call(getTarget, { target: ref, project: undefined })).target;
    expect(await get()).toMatchObject({ name: "web", state });
    await call(upsertTarget, { target: { ...given, state: Operation_PhysicalState.DESTROYED }, project: undefined });
    expect(await get()).toMatchObject({ state: Operation_PhysicalState.DESTROYED });
    const orphan = Target.fromPartial({ name: "db" });
    await expect(call(upsertTarget, { target: orphan, project: undefined })).rejects.toMatchObject({
      details: expect.stringMatching(/project|parent/i),
    });
    const found = await call(findTarget, { target: Target.fromPartial({ name: "web", project: refOf(project) }) });
    expect(found.target).toMatchObject(ref);
    const ids = async () => (await call(listTargets, {})).targets.map(({ resource_id }) => resource_id);
    expect(await ids()).toContain(ref.resource_id);
    await call(deleteTarget, { target: ref, project: undefined });
    await expect(get()).rejects.toMatchObject(notFound);
    expect(await ids()).not.toContain(ref.resource_id);
  },

  async Box({ call }) {
    const name = `hashicorp/${ulid()}`;
    for (const version of ["1.0.0", "2.0.0"]) {
      const box = Box.fromPartial({ name, version, provider: "virtualbox", directory: `/boxes/${ulid()}` });
      await call(upsertBox, { box });
    }
    const boxes = (await call(listBoxes, {})).boxes.filter((box) => box.name === name);
    expect(boxes.map(({ version }) => version)).toEqual(["1.0.0", "2.0.0"]);
    const [first] = boxes;
    expect((await call(getBox, { box: first })).box).toMatchObject({ name, version: "1.0.0" });
    const unknown = { resource_id: ulid(), name: "", version: "", provider: "" };
    await expect(call(getBox, { box: unknown })).rejects.toMatchObject(notFound);
    const find = async (version: string, provider = "") =>
      (await call(findBox, { box: { resource_id: "", name, version, provider } })).box?.version;
    expect(await find("1.0.0", "virtualbox")).toBe("1.0.0");
    expect(await find(">= 1.5")).toBe("2.0.0");
    expect(await find("> 2")).toBeUndefined();
  },

  async "QueueJob: success and expiration"(server) {
    const job = await newJob(server, ulid());
    expect(await server.call(getJob, { job_id: job })).toMatchObject({ id: job, state: Job_State.QUEUED });
    await server.call(cancelJob, { job_id: job });
    await inState(server, job, Job_State.ERROR);
    const short = await newJob(server, ulid(), "100ms");
    await (await listen(server, short)).rest();
    expect(await server.call(getJob, { job_id: short })).toMatchObject({ state: Job_State.ERROR, error: { code: 1 } });
  },

  async "ValidateJob: not assignable and invalid"(server) {
    const job = await newJob(server, ulid());
    const { call } = server;
    const { target_runner } = upJob({ project: "", runner: ulid() });
    const request = { ...(await call(getJob, { job_id: job })), target_runner };
    expect(await call(validateJob, { job: request, disable_assign: false })).toMatchObject({
      valid: true,
      assignable: false,
    });
    const unknown = Job.fromPartial({ id: "unknown" });
    expect(await call(validateJob, { job: unknown, disable_assign: false })).toMatchObject({
      valid: false,
      validation_error: { message: expect.stringMatching(/not found/) },
    });
  },

  async "GetJobStream: complete"(server) {
    using runner = await newRunner(server);
    const { job, stream } = await runningJob(server, runner.id);
    const listener = await listen(server, job);
    expect(await listener.next()).toMatchObject({ $case: "open" });
    stream.send({ $case: "terminal", value: { events: [line("one")] } });
    expect(await listener.until("terminal")).toMatchObject({ value: { events: [line("one")] } });
    stream.send({ $case: "complete", value: { result: commandResult({ run_result: true }) } });
    expect(await stream.end()).toBe(status.OK);
    const rest = await listener.rest();
    expect(rest.map(({ $case }) => $case)).toEqual([...rest.slice(1).map(() => "state"), "complete"]);
    expect(rest.at(-1)).toMatchObject({ value: { result: { run: { run_result: true } } } });
  },

  async "GetJobStream: bufferedData"(server) {
    using runner = await newRunner(server);
    const { job, stream } = await runningJob(server, runner.id);
    for (const text of ["one", "two", "three"]) {
      stream.send({ $case: "terminal", value: { events: [line(text)] } });
    }
    stream.send({ $case: "complete", value: { result: commandResult({ run_result: true }) } });
    expect(await stream.end()).toBe(status.OK);
    const listener = await listen(server, job);
    expect(await listener.next()).toMatchObject({ $case: "open" });
    expect(await listener.next()).toMatchObject({ $case: "state", value: { current: Job_State.SUCCESS } });
    const rest = await listener.rest();
    const output = rest.flatMap((event) => (event.$case === "terminal" ? [event.value] : []));
    expect(output.every(({ buffered }) => buffered)).toBe(true);
    expect(output.flatMap(({ events }) => events.map(textOf))).toEqual(["one", "two", "three"]);
    expect(rest.filter(({ $case }) => $case !== "terminal")).toMatchObject([{ $case: "complete" }]);
  },

  async "GetJobStream: expired"(server) {
    const job = await newJob(server, ulid(), "50ms");
    const events = await (await listen(server, job)).rest();
    expect(events.at(0)).toMatchObject({ $case: "open" });
    expect(events.at(-1)).toMatchObject({ $case: "complete", value: { error: { message: "canceled" } } });
  },

  async "RunnerJobStream: badOpen"(server) {
    const bad = jobStreamOf(server);
    bad.send({ $case: "ack", value: {} });
    expect(await bad.end()).toBe(status.FAILED_PRECONDITION);
    const stranger = jobStreamOf(server);
    stranger.send({ $case: "request", value: { runner_id: ulid() } });
    expect(await stranger.end()).toBe(status.NOT_FOUND);
  },

  async "RunnerJobStream: complete"(server) {
    using runner = await newRunner(server);
    const { job, stream } = await runningJob(server, runner.id);
    stream.send({ $case: "complete", value: { result: commandResult({ run_result: true }) } });
    expect(await stream.end()).toBe(status.OK);
    await inState(server, job, Job_State.SUCCESS);
  },

  async "RunnerJobStream: errorBeforeAck"(server) {
    using runner = await newRunner(server);
    const refused = await newJob(server, runner.id);
    const refusing = jobStreamOf(server);
    refusing.send({ $case: "request", value: { runner_id: runner.id } });
    expect(await refusing.next()).toMatchObject({ $case: "assignment", value: { job: { id: refused } } });
    refusing.send({ $case: "error", value: { error: { code: status.UNKNOWN, message: "not now" } } });
    expect(await refusing.end()).toBe(status.OK);
    await inState(server, refused, Job_State.QUEUED);
    await server.call(cancelJob, { job_id: refused });
  },

  async "RunnerJobStream: cancel"(server) {
    using runner = await newRunner(server);
    const canceled = await runningJob(server, runner.id);
    await server.call(cancelJob, { job_id: canceled.job });
    expect(await canceled.stream.next()).toMatchObject({ $case: "cancel", value: { force: false } });
    canceled.stream.send({ $case: "error", value: { error: { code: status.CANCELLED, message: "canceled" } } });
    expect(await canceled.stream.end()).toBe(status.OK);
    await inState(server, canceled.job, Job_State.ERROR);
  },
};
