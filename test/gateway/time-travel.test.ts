import {
  GetInfoResponse,
  InspectImageRequest,
  InspectImageResponse,
  InspectPodRequest,
  InspectPodResponse,
  ListImagesResponse,
  ListPodsResponse,
  Pod,
  PodState,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { State as V1State } from "@tapedeck/proto/skaffold/v1/skaffold";
import { State as V2State } from "@tapedeck/proto/skaffold/v2/skaffold";
import {
  GetStateRequest,
  type GetStateResponse,
  ListOperationsRequest,
  ListSessionsRequest,
  ListSourcesRequest,
  TapedeckService,
} from "@tapedeck/proto/tapedeck/v1/tapedeck";
import {
  FindBasisRequest,
  FindBoxRequest,
  FindProjectRequest,
  FindTargetRequest,
  GetBasisRequest,
  GetBoxRequest,
  GetJobRequest,
  GetProjectRequest,
  GetRunnerRequest,
  GetTargetRequest,
  Job,
  Job_State,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { rktHost } from "@tapedeck/query/testing/rkt-scenario";
import { type Scenario, shop } from "@tapedeck/query/testing/scenario";
import { vagrantShop } from "@tapedeck/query/testing/vagrant-scenario";
import { endOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { endPosition, eventPosition, seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { skaffoldClient } from "../skaffold/client.ts";
import { bearing, startTokenStack } from "../stack/token-stack.ts";
import {
  type ApiAccess,
  asIs,
  type Call,
  grpc,
  http,
  type Method,
  method,
  ofOurs,
  ofSkaffold,
} from "./time-travel-calls.ts";
import { chapters, job, pod, sourceIn, type Workspace, workspaces } from "./time-travel-scenarios.ts";

// Every call of every API that returns a state accepts a time, with the same meaning. Two workspaces are written in turns:
// each has positions and times of its own.

/** The last event of a chapter: its position and recorded time. */
type ChapterEnd = { readonly position: string; readonly time: string };

type Written = {
  readonly access: ApiAccess;
  readonly epoch: string;
  /** Where each chapter ends, beginning with the one before the scenarios. */
  readonly ends: ChapterEnd[];
  /** The first position of each source. */
  readonly firsts: Map<string, string>;
};

const cleanup = new AsyncDisposableStack();
const written = new Map<Workspace, Written>();

const writtenIn = (workspace: Workspace) => written.get(workspace) ?? expect.fail("nothing was written");
const latestIn = (workspace: Workspace) => writtenIn(workspace).ends.at(-1)?.position ?? "";

/** A chapter of one begins while the other is in another one; and where one has ended, the other has no end. */
const turns: readonly Workspace[] = ["globex", "globex", "globex", "acme", "acme", "acme", "globex", "acme"];
const earlier = { acme: 1, globex: 200 };

beforeAll(async () => {
  const { on, token } = cleanup.use(await startTokenStack());
  const client = cleanup.use(skaffoldClient(on.stack.grpc));
  const left = new Map<Workspace, Scenario["events"][][]>();
  for (const workspace of new Set(turns)) {
    const { text } = await token(workspace, ["viewer"]);
    const { epoch } = await on.stack.logs.of(workspace);
    const access = { client, stack: on.stack, workspace, token: text };
    written.set(workspace, { access, epoch, ends: [], firsts: new Map() });
    left.set(
      workspace,
      chapters(workspace, earlier[workspace]).map((chapter) => [...chapter]),
    );
  }
  for (const workspace of turns) {
    const { epoch, ends, firsts } = writtenIn(workspace);
    for (const events of left.get(workspace)?.shift() ?? []) {
      const [first = 0] = await on.write(events);
      const source = events[0]?.source ?? "";
      if (!firsts.has(source)) firsts.set(source, eventPosition(epoch, first));
    }
    const { reader } = await on.stack.logs.of(workspace);
    const lastSeq = sequenceOf((await reader.bounds()).lastOffset);
    const from = { afterOffset: endOf(lastSeq - 1), subjects: [] };
    const [last] = await Array.fromAsync(reader.history(from, endOf(lastSeq), AbortSignal.timeout(60_000)));
    const recordedAt = last?.recordedAt ?? new Date(0);
    ends.push({ position: endPosition(epoch, lastSeq), time: recordedAt.toISOString() });
    // The next chapter begins at another time.
    await until(() => Date.now() > recordedAt.getTime() + 1, { message: "the next millisecond" });
  }
  await on.stack.caughtUp();
});
afterAll(() => cleanup.disposeAsync());

type Artifacts = { readonly buildState?: { readonly artifacts: Readonly<Record<string, string>> } | null | undefined };
const web = ({ buildState }: Artifacts) => buildState?.artifacts.web;
const builds = ["In Progress", "Complete", "Canceled"] as const;
const v2Builds = ["InProgress", "Succeeded", "Canceled"] as const;

const skaffold: readonly Call[] = [
  grpc(shop, getState("proto.SkaffoldService", V1State), Buffer.alloc(0), web, builds),
  grpc(shop, getState("proto.v2.SkaffoldV2Service", V2State), Buffer.alloc(0), web, v2Builds),
  http(shop, "/v1/state", web, ofSkaffold, builds),
  http(shop, "/v2/state", web, ofSkaffold, v2Builds),
];

function getState(service: string, { decode }: { decode(bytes: Uint8Array): Artifacts }): Method<Buffer, Artifacts> {
  return { path: `/${service}/GetState`, requestSerialize: asIs, responseDeserialize: decode };
}

const publicApi = "/v1alpha.PublicAPI";
const nothing = { encode: () => ({ finish: () => new Uint8Array() }) };
const podStates = [PodState.POD_STATE_PREPARED, PodState.POD_STATE_RUNNING, PodState.POD_STATE_EXITED] as const;
const sizes = [1n, 2n, 3n] as const;

const rkt: readonly Call[] = [
  grpc(
    rktHost,
    method(`${publicApi}/ListPods`, nothing, ListPodsResponse),
    {},
    ({ pods }) => pods[0]?.state,
    podStates,
  ),
  grpc(
    rktHost,
    method(`${publicApi}/InspectPod`, InspectPodRequest, InspectPodResponse),
    { id: pod },
    (response) => response.pod?.state,
    podStates,
  ),
  grpc(
    rktHost,
    method(`${publicApi}/ListImages`, nothing, ListImagesResponse),
    {},
    ({ images }) => images[0]?.size,
    sizes,
  ),
  grpc(
    rktHost,
    method(`${publicApi}/InspectImage`, InspectImageRequest, InspectImageResponse),
    { id: "sha512-1" },
    ({ image }) => image?.size,
    sizes,
  ),
  grpc(rktHost, method(`${publicApi}/GetInfo`, nothing, GetInfoResponse), {}, ({ info }) => info?.global_flags?.dir, [
    "/one",
    "/two",
    "/three",
  ]),
];

const V = VagrantService;
const of = <Request, Response>(
  rpc: Method<Request, Response>,
  request: Request,
  gistOf: (response: Response) => unknown,
  gists: Call["gists"],
) => grpc(vagrantShop, rpc, request, gistOf, gists);
const resource_id = (kind: string) => ({ resource_id: `${kind}-1` });
/** A value of each chapter, by its number. */
const each = <T>(make: (chapter: number) => T) => [make(1), make(2), make(3)] as const;
const jobStates = [Job_State.QUEUED, Job_State.WAITING, Job_State.RUNNING] as const;

const vagrant: readonly Call[] = [
  of(
    V.getVersionInfo,
    {},
    ({ info }) => info?.version,
    each((n) => `2.3.${n}`),
  ),
  of(
    V.getBasis,
    GetBasisRequest.fromPartial({ basis: resource_id("basis") }),
    ({ basis }) => basis?.path,
    each((n) => `/b${n}`),
  ),
  of(
    V.findBasis,
    FindBasisRequest.fromPartial({ basis: { name: "default" } }),
    ({ basis }) => basis?.path,
    each((n) => `/b${n}`),
  ),
  of(
    V.listBasis,
    {},
    ({ basis }) => basis.map(({ path }) => path),
    each((n) => [`/b${n}`]),
  ),
  of(
    V.getProject,
    GetProjectRequest.fromPartial({ project: resource_id("project") }),
    ({ project }) => project?.path,
    each((n) => `/p${n}`),
  ),
  of(
    V.findProject,
    FindProjectRequest.fromPartial({ project: { name: "shop", basis: {} } }),
    ({ project }) => project?.path,
    each((n) => `/p${n}`),
  ),
  of(
    V.listProjects,
    {},
    ({ projects }) => projects.map(({ path }) => path),
    each((n) => [`/p${n}`]),
  ),
  of(
    V.getTarget,
    GetTargetRequest.fromPartial({ target: resource_id("target") }),
    ({ target }) => target?.state,
    [1, 2, 3],
  ),
  of(
    V.findTarget,
    FindTargetRequest.fromPartial({ target: { uuid: "4f5a" } }),
    ({ target }) => target?.state,
    [1, 2, 3],
  ),
  of(
    V.listTargets,
    {},
    ({ targets }) => targets.map(({ name }) => name),
    each((n) => [`web${n}`]),
  ),
  of(
    V.getBox,
    GetBoxRequest.fromPartial({ box: resource_id("box") }),
    ({ box }) => box?.version,
    each((n) => `1.${n}.0`),
  ),
  of(
    V.findBox,
    FindBoxRequest.fromPartial({ box: { name: "debian" } }),
    ({ box }) => box?.version,
    each((n) => `1.${n}.0`),
  ),
  of(
    V.listBoxes,
    {},
    ({ boxes }) => boxes.map(({ version }) => version),
    each((n) => [`1.${n}.0`]),
  ),
  of(
    V.getRunner,
    GetRunnerRequest.fromPartial({ runner_id: "runner-1" }),
    (runner) => runner.components[0]?.name,
    each((n) => `runner ${n}`),
  ),
  of(V.getJob, GetJobRequest.fromPartial({ job_id: job }), ({ state }) => state, jobStates),
  of(V.listJobs, {}, ({ jobs }) => jobs[0]?.state, jobStates),
];

const T = TapedeckService;
const first = ({ rows }: GetStateResponse, collection: string) =>
  rows.find((row) => row.collection === collection)?.message?.value ?? Buffer.alloc(0);
const now = GetStateRequest.create();

type HttpState = {
  readonly state: {
    readonly v1: Artifacts;
    readonly pods: readonly { readonly state: string }[];
    readonly targets: readonly { readonly name: string }[];
  };
};

const states: readonly Call[] = [
  grpc(shop, T.getState, now, (state) => web(V1State.decode(first(state, "skaffold.v1"))), builds),
  grpc(shop, T.getState, now, (state) => web(V2State.decode(first(state, "skaffold.v2"))), v2Builds),
  grpc(rktHost, T.getState, now, (state) => Pod.decode(first(state, "rkt.pods")).state, podStates),
  grpc(vagrantShop, T.getState, now, (state) => Job.decode(first(state, "vagrant.jobs")).state, jobStates),
  http(shop, "/api/v1/state", ({ state }: HttpState) => web(state.v1), ofOurs, builds),
  http(rktHost, "/api/v1/state", ({ state }: HttpState) => state.pods[0]?.state, ofOurs, [
    "POD_STATE_PREPARED",
    "POD_STATE_RUNNING",
    "POD_STATE_EXITED",
  ]),
  http(
    vagrantShop,
    "/api/v1/state",
    ({ state }: HttpState) => state.targets[0]?.name,
    ofOurs,
    each((n) => `web${n}`),
  ),
].map((call) => ({ ...call, name: `${call.name} of ${call.source}` }));

type HttpList = { readonly items: readonly Readonly<Record<string, unknown>>[] };
const currentSessions = [["01S1"], ["01S1"], ["01S2"]] as const;
const sessionEnds = [
  [["01S1", false]],
  [["01S1", false]],
  [
    ["01S2", false],
    ["01S1", true],
  ],
] as const;
const outcomes = [[""], ["succeeded"], ["canceled", "succeeded"]] as const;
const ofBuilds = ListOperationsRequest.fromPartial({ filter: { kinds: ["build"] } });

const lists: readonly Call[] = [
  grpc(
    shop,
    T.listSources,
    ListSourcesRequest.create(),
    ({ items }) => items.map((item) => item.current_session),
    currentSessions,
  ),
  http(
    shop,
    "/api/v1/sources",
    ({ items }: HttpList) => items.map((item) => item.currentSession),
    ofOurs,
    currentSessions,
  ),
  grpc(
    shop,
    T.listSessions,
    ListSessionsRequest.create(),
    ({ items }) => items.map((item) => [item.session, item.ended]),
    sessionEnds,
  ),
  http(
    shop,
    "/api/v1/sessions",
    ({ items }: HttpList) => items.map((item) => [item.session, item.endedAt !== null]),
    ofOurs,
    sessionEnds,
  ),
  grpc(shop, T.listOperations, ofBuilds, ({ items }) => items.map((item) => item.outcome), outcomes),
  http(
    shop,
    "/api/v1/operations?kind=build",
    ({ items }: HttpList) => items.map((item) => item.outcome ?? ""),
    ofOurs,
    outcomes,
  ),
].map((call) => ({ ...call, isList: true }));

const calls = [...skaffold, ...rkt, ...vagrant, ...states, ...lists];
const everywhere = [...new Set(turns)].flatMap((workspace) =>
  calls.map(({ name, ...call }) => ({ ...call, name: `${name} in ${workspace}`, workspace })),
);

describe.each(everywhere)("$name", ({ workspace, source, gists, isList, ask }) => {
  const expected = isList ? gists.map((gist) => sessionsIn(workspace, gist)) : gists;
  const askAll = (points: readonly (string | undefined)[]) =>
    Promise.all(points.map((at) => ask(writtenIn(workspace).access, at)));

  it("answers as of a position, as of a time, and as of now", async () => {
    const [, one, two] = writtenIn(workspace).ends;
    const answers = await askAll([one?.position, one?.time, two?.position, two?.time, undefined]);
    expect(answers).toEqual([0, 0, 1, 1, 2].map((chapter) => ({ gist: expected[chapter] })));
  });

  it("knows nothing of the time before the first event", async () => {
    const { ends, firsts } = writtenIn(workspace);
    const earliest = firsts.get(sourceIn(workspace, source));
    const nothing = isList ? { gist: [] } : { refused: "before_first", earliest };
    expect(await askAll([ends[0]?.position, "2020-01-01T00:00:00Z"])).toEqual([nothing, nothing]);
  });

  it("refuses positions that the log lacks and invalid moments, and takes a future time as now", async () => {
    const latest = latestIn(workspace);
    const { epoch } = writtenIn(workspace);
    const other = latestIn(workspace === "acme" ? "globex" : "acme");
    const points = [eventPosition(epoch, seqIn(latest) + 1), other, "1100-zzzzzz", "yesterday", "2999-01-01T00:00:00Z"];
    expect(await askAll(points)).toEqual([
      { refused: "position_future", latest },
      { refused: "position_foreign" },
      { refused: "position_foreign" },
      { refused: "invalid_argument" },
      { gist: expected[2] },
    ]);
  });
});

/** Sessions are named as in acme. */
function sessionsIn(workspace: Workspace, gist: unknown): unknown {
  return JSON.parse(JSON.stringify(gist).replaceAll('"01S', `"${workspaces[workspace]}S`));
}

describe("a stream", () => {
  it.each([
    ["/tapedeck.v1.Tapedeck/Events", shop],
    ["/proto.SkaffoldService/Events", shop],
    ["/proto.SkaffoldService/EventLog", shop],
    ["/proto.v2.SkaffoldV2Service/Events", shop],
    ["/proto.v2.SkaffoldV2Service/ApplicationLogs", shop],
    ["/v1alpha.PublicAPI/ListenEvents", rktHost],
    ["/v1alpha.PublicAPI/GetLogs", rktHost],
    ["/hashicorp.vagrant.Vagrant/GetJobStream", vagrantShop],
  ])("%s has no state, and the error names the alternative", async (path, source) => {
    const { access } = writtenIn("acme");
    const head = {
      ...bearing(access.token),
      "client-api-protocol": "1,1",
      "tapedeck-source": source,
      "tapedeck-at": latestIn("acme"),
    };
    const refusal = await access.client.take(path, 1, head).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 3, details: expect.stringContaining("`at`") });
  });
});
