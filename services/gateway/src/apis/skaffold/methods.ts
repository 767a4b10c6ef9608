/** Every method of Skaffold's two APIs: its gRPC path, its HTTP path and how Tapedeck answers it. */
export type SkaffoldMethod = StateMethod | StreamMethod | ControlMethod;

type MethodAddress = {
  readonly api: "v1" | "v2";
  /** Full gRPC method, "/proto.SkaffoldService/GetState". */
  readonly path: string;
  readonly http: { readonly verb: "GET" | "POST" | "PUT"; readonly path: string };
};

/** A method that answers the state. */
export type StateMethod = MethodAddress & { readonly kind: "state" };

/** A method that streams a channel. */
export type StreamMethod = MethodAddress & {
  readonly kind: "stream";
  readonly channel: "v1" | "v2" | "logs";
  /** Registered as bidirectional: serves the clients of both generations (Skaffold 0.x called Events that way). */
  readonly bidirectional: boolean;
};

/** A method that changes the running Skaffold. */
export type ControlMethod = MethodAddress & {
  readonly kind: "control";
  readonly action: "execute" | "auto" | "handle";
  /** Type of the message in an HTTP body, which is field 1 of the request or, for Handle, the request itself. */
  readonly bodyType: string;
  readonly bodyIsRequest: boolean;
};

const services = { v1: "proto.SkaffoldService", v2: "proto.v2.SkaffoldV2Service" } as const;
const packages = { v1: "proto", v2: "proto.v2" } as const;

function methodsOf(api: "v1" | "v2"): SkaffoldMethod[] {
  const path = (name: string) => `/${services[api]}/${name}`;
  const auto = (what: "Build" | "Sync" | "Deploy"): ControlMethod => ({
    api,
    kind: "control",
    action: "auto",
    path: path(`Auto${what}`),
    http: { verb: "PUT", path: `/${api}/${what.toLowerCase()}/auto_execute` },
    bodyType: `${packages[api]}.TriggerState`,
    bodyIsRequest: false,
  });
  return [
    { api, kind: "state", path: path("GetState"), http: { verb: "GET", path: `/${api}/state` } },
    {
      api,
      kind: "stream",
      path: path("Events"),
      http: { verb: "GET", path: `/${api}/events` },
      channel: api,
      bidirectional: api === "v1",
    },
    {
      api,
      kind: "control",
      action: "execute",
      path: path("Execute"),
      http: { verb: "POST", path: `/${api}/execute` },
      bodyType: `${packages[api]}.Intent`,
      bodyIsRequest: false,
    },
    auto("Build"),
    auto("Sync"),
    auto("Deploy"),
    {
      api,
      kind: "control",
      action: "handle",
      path: path("Handle"),
      http: { verb: "POST", path: `/${api}/events/handle` },
      bodyType: `${packages[api]}.Event`,
      bodyIsRequest: true,
    },
  ];
}

/** The methods of both APIs that the gateway serves. */
export const skaffoldMethods: readonly SkaffoldMethod[] = [
  ...methodsOf("v1"),
  {
    api: "v1",
    kind: "stream",
    path: `/${services.v1}/EventLog`,
    http: { verb: "GET", path: "/v1/event_log" },
    channel: "v1",
    bidirectional: true,
  },
  ...methodsOf("v2"),
  {
    api: "v2",
    kind: "stream",
    path: `/${services.v2}/ApplicationLogs`,
    http: { verb: "GET", path: "/v2/applicationLogs" },
    channel: "logs",
    bidirectional: false,
  },
];

/** Message types by channel, as the upstream sends them. */
export const channelMessageTypes = { v1: "proto.LogEntry", v2: "proto.v2.Event", logs: "proto.v2.Event" } as const;

/** The message that is the state, by API. */
export const stateMessageTypes = { v1: "proto.State", v2: "proto.v2.State" } as const;
