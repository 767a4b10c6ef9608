import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { MaintainApi } from "../apis/maintain/maintain-api.ts";
import type { RecorderRelay } from "../apis/recorder/relay.ts";
import type { ShardApi } from "../apis/shard-api.ts";
import type { TapedeckApi } from "../apis/tapedeck/tapedeck-api.ts";
import type { VagrantApi } from "../apis/vagrant/methods.ts";
import type { GatewayApis } from "../apis.ts";
import type { CallContext, Caller } from "../call-context.ts";
import type { RebuildProgress } from "../maintain-client.ts";

/** The APIs of a workspace's shard. Rejects with TapedeckError when the shard is not known. */
type RouteTo = (workspace: string) => Promise<GatewayApis>;

type InWorkspace = Pick<Caller, "workspace">;

/**
 * The APIs over several shards: each call is one of the shard that has its caller's workspace. `all`: home first. What
 * concerns no workspace is home's.
 */
export function shardedApis(
  all: readonly [home: GatewayApis, ...GatewayApis[]],
  to: RouteTo,
  shards: ShardApi,
): GatewayApis {
  const [home] = all;
  return {
    skaffold: {
      getState: byLast(to, (apis) => apis.skaffold.getState),
      events: byLast(to, (apis) => apis.skaffold.events),
      control: byLast(to, (apis) => apis.skaffold.control),
    },
    rkt: {
      getInfo: byLast(to, (apis) => apis.rkt.getInfo),
      listPods: byLast(to, (apis) => apis.rkt.listPods),
      inspectPod: byLast(to, (apis) => apis.rkt.inspectPod),
      listImages: byLast(to, (apis) => apis.rkt.listImages),
      inspectImage: byLast(to, (apis) => apis.rkt.inspectImage),
      listenEvents: byLast(to, (apis) => apis.rkt.listenEvents),
      getLogs: byLast(to, (apis) => apis.rkt.getLogs),
    },
    vagrant: vagrantIn(home.vagrant, to),
    tapedeck: tapedeckIn(to),
    tokens: home.tokens,
    audit: home.audit,
    maintain: {
      erase: byLast(to, (apis) => apis.maintain.erase),
      // The tokens of all workspaces are in home.
      eraseDeveloper: byLast(to, (apis) => apis.maintain.eraseDeveloper),
      rebuild: async (context) => rebuildInTurn(await home.maintain.rebuild(context), all.slice(1), context),
      async backUp() {
        throw invalidArgument(
          "this Tapedeck has several shards: back up each shard at its own NATS, see docs/operations.md",
        );
      },
    },
    shards,
    relay: relayIn(to),
  };
}

/** A method whose last argument names the workspace, in the shard of that. */
function byLast<Before extends readonly unknown[], Last extends InWorkspace, Answer>(
  to: RouteTo,
  method: (apis: GatewayApis) => (...args: [...Before, Last]) => Promise<Answer>,
): (...args: [...Before, Last]) => Promise<Answer> {
  return async (...args) => {
    const { workspace } = args.at(-1) as Last;
    return method(await to(workspace))(...args);
  };
}

/** Likewise by the first argument. */
function byFirst<First extends InWorkspace, After extends readonly unknown[], Answer>(
  to: RouteTo,
  method: (apis: GatewayApis) => (first: First, ...args: After) => Promise<Answer>,
): (first: First, ...args: After) => Promise<Answer> {
  return async (first, ...args) => method(await to(first.workspace))(first, ...args);
}

function tapedeckIn(to: RouteTo): TapedeckApi {
  return {
    lists: {
      sources: byFirst(to, (apis) => apis.tapedeck.lists.sources),
      sessions: byFirst(to, (apis) => apis.tapedeck.lists.sessions),
      operations: byFirst(to, (apis) => apis.tapedeck.lists.operations),
      search: byFirst(to, (apis) => apis.tapedeck.lists.search),
    },
    stats: byFirst(to, (apis) => apis.tapedeck.stats),
    status: byLast(to, (apis) => apis.tapedeck.status),
    state: byLast(to, (apis) => apis.tapedeck.state),
    stateMessages: byLast(to, (apis) => apis.tapedeck.stateMessages),
    events: byLast(to, (apis) => apis.tapedeck.events),
    compare: byFirst(to, (apis) => apis.tapedeck.compare),
    subscribe: byLast(to, (apis) => apis.tapedeck.subscribe),
  };
}

function vagrantIn({ unary, streams, runners }: VagrantApi, to: RouteTo): VagrantApi {
  const routed = <Name extends string, Method>(
    methods: Readonly<Record<Name, Method>>,
    route: (name: Name) => Method,
  ) => Object.fromEntries((Object.keys(methods) as Name[]).map((name) => [name, route(name)])) as Record<Name, Method>;
  return {
    unary: routed(unary, (name) => byLast(to, (apis) => apis.vagrant.unary[name])),
    streams: routed(streams, (name) => byLast(to, (apis) => apis.vagrant.streams[name])),
    runners: routed(runners, (name) => byLast(to, (apis) => apis.vagrant.runners[name])),
  };
}

function relayIn(to: RouteTo): RecorderRelay {
  return {
    push(call, caller, statusOf) {
      to(caller.workspace)
        .then(({ relay }) => {
          if (!call.cancelled) relay.push(call, caller, statusOf);
        })
        .catch((error: unknown) => call.emit("error", statusOf(error)));
    },
    // Each shard's own relay is closed with the shard.
    [Symbol.asyncDispose]: async () => {},
  };
}

/** The total grows when the next shard begins. */
async function* rebuildInTurn(
  first: AsyncIterable<RebuildProgress>,
  others: readonly { readonly maintain: Pick<MaintainApi, "rebuild"> }[],
  context: CallContext,
): AsyncGenerator<RebuildProgress, void> {
  let [messagesBefore, eventsBefore] = [0, 0];
  const rebuilds = [
    async () => first,
    ...others.map(
      ({ maintain }) =>
        () =>
          maintain.rebuild(context),
    ),
  ];
  for (const begin of rebuilds) {
    let [messages, events] = [0, 0];
    for await (const progress of await begin()) {
      ({ messages, events } = progress);
      yield {
        messages: messagesBefore + messages,
        done: messagesBefore + progress.done,
        events: eventsBefore + events,
      };
    }
    if (context.signal.aborted) return;
    messagesBefore += messages;
    eventsBefore += events;
  }
}
