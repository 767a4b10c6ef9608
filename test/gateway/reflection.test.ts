import { type Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { scenario } from "@tapedeck/query/testing/scenario";
import { GrpcReflection } from "grpc-js-reflection-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

// A client that has only the gateway's address can use Tapedeck.

const services = {
  "tapedeck.v1.Tapedeck": "GetState",
  "tapedeck.v1.Recorder": "Push",
  "proto.SkaffoldService": "GetState",
  "proto.v2.SkaffoldV2Service": "GetState",
  "v1alpha.PublicAPI": "ListPods",
  "hashicorp.vagrant.Vagrant": "GetJobStream",
  "grpc.health.v1.Health": "Check",
} as const;

/** Messages of states, wherever they come from, and a field of each by this client's name for it. */
const stateTypes = [
  ["proto.State", "buildState"],
  ["proto.v2.State", "buildState"],
  ["v1alpha.Pod", "manifest"],
  ["v1alpha.Image", "baseFormat"],
  ["v1alpha.GetInfoResponse", "info"],
  ["hashicorp.vagrant.Job", "queueTime"],
  ["hashicorp.vagrant.Job.CommandResult", "exitCode"],
  ["hashicorp.vagrant.Target", "resourceId"],
  ["hashicorp.vagrant.Target.Machine", "box"],
  ["hashicorp.vagrant.Project", "basis"],
  ["hashicorp.vagrant.Box", "provider"],
  ["hashicorp.vagrant.sdk.Command.Arguments", "flags"],
] as const;

/** The parts of a descriptor that this client drops. */
const empty = Buffer.alloc(0);

const cleanup = new AsyncDisposableStack();
let on: SeededStack;

beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  const alice = scenario();
  const session = alice.session("01A1");
  session.started();
  session.configured();
  session.build("web", "started");
  await on.seed(alice.events);
});
afterAll(() => cleanup.disposeAsync());

describe.each(["v1", "v1alpha"] as const)("reflection %s", (version) => {
  // Its types come from its own grpc-js.
  const reflect = () => new GrpcReflection(on.stack.grpc, credentials.createInsecure() as never, {}, version);

  it("lists the services", async () => {
    expect((await reflect().listServices()).sort()).toEqual(Object.keys(services).sort());
  });

  it.each(Object.entries(services))("describes all methods of %s", async (service, method) => {
    const methods = (await reflect().listMethods(service)).map(({ name }) => name);
    expect(methods).toContain(method);
  });

  it.each(stateTypes)("resolves %s", async (type, field) => {
    const root = (await reflect().getDescriptorBySymbol(type)).getProtobufJsRoot();
    const found = root.lookupType(type);
    root.resolveAll();
    expect(Object.keys(found.fields)).toContain(field);
  });

  it("is enough for a client to read a state", async () => {
    const reflection = reflect();
    const descriptor = await reflection.getDescriptorBySymbol("tapedeck.v1.Tapedeck");
    const { tapedeck } = descriptor.getPackageObject({ keepCase: true, longs: String }) as unknown as Api;
    const client = new tapedeck.v1.Tapedeck(on.stack.grpc, credentials.createInsecure());
    try {
      const state = await new Promise<StateAnswer>((resolve, reject) =>
        client.GetState({ source: "alice/shop" }, (error, answer) => (error ? reject(error) : resolve(answer))),
      );
      expect(state).toMatchObject({ source: "acme/alice/shop/skaffold", session: "01A1" });
      const read = await Promise.all(
        state.rows.map(async ({ message: { type_url, value = empty } }) => {
          const type = type_url.replace("type.googleapis.com/", "");
          const root = (await reflection.getDescriptorBySymbol(type)).getProtobufJsRoot();
          return [type, root.lookupType(type).decode(value).toJSON()] as const;
        }),
      );
      expect(read.map(([type]) => type)).toEqual(["proto.State", "proto.v2.State"]);
      expect(read[0]?.[1]).toMatchObject({ buildState: { artifacts: { web: expect.any(String) } } });
    } finally {
      client.close();
    }
  });
});

type StateAnswer = { readonly rows: readonly { readonly message: { type_url: string; value?: Buffer } }[] };
type GetState = (request: object, answered: (error: ServiceError | null, answer: StateAnswer) => void) => unknown;
type Api = {
  readonly tapedeck: {
    readonly v1: {
      readonly Tapedeck: new (address: string, channel: unknown) => Client & { readonly GetState: GetState };
    };
  };
};
