import { VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import type { RktApi } from "../apis/rkt/methods.ts";
import type { SkaffoldApi } from "../apis/skaffold/skaffold-api.ts";
import type { TapedeckApi } from "../apis/tapedeck/tapedeck-api.ts";
import { runnerNames, streamNames, type VagrantApi } from "../apis/vagrant/methods.ts";
import type { Caller } from "../call-context.ts";

/** The APIs that serve what developers have recorded. The others are for admins, or take recordings. */
export type RecordApis = {
  readonly skaffold: SkaffoldApi;
  readonly rkt: RktApi;
  readonly vagrant: VagrantApi;
  readonly tapedeck: TapedeckApi;
};

/** What decides which APIs a caller gets: the workspace, and whose recordings it may see there. */
export type RoutedCaller = Pick<Caller, "workspace" | "roles" | "developer">;

type RouteTo = (caller: RoutedCaller) => Promise<RecordApis>;

/** Serves each call by the APIs of its caller. The type names every method, so that a new one is routed, too. */
export function routedApis(to: RouteTo): RecordApis {
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
    vagrant: vagrantIn(to),
    tapedeck: {
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
      sql: byFirst(to, (apis) => apis.tapedeck.sql),
      compare: byFirst(to, (apis) => apis.tapedeck.compare),
      exportTables: byLast(to, (apis) => apis.tapedeck.exportTables),
      subscribe: byLast(to, (apis) => apis.tapedeck.subscribe),
    },
  };
}

/** A method whose last argument is, or has, the caller. */
function byLast<Before extends readonly unknown[], Last extends RoutedCaller, Answer>(
  to: RouteTo,
  method: (apis: RecordApis) => (...args: [...Before, Last]) => Promise<Answer>,
): (...args: [...Before, Last]) => Promise<Answer> {
  return async (...args) => method(await to(args.at(-1) as Last))(...args);
}

/** Likewise by the first argument. */
function byFirst<First extends RoutedCaller, After extends readonly unknown[], Answer>(
  to: RouteTo,
  method: (apis: RecordApis) => (first: First, ...args: After) => Promise<Answer>,
): (first: First, ...args: After) => Promise<Answer> {
  return async (first, ...args) => method(await to(first))(first, ...args);
}

type Unary = keyof VagrantApi["unary"];

const otherNames: ReadonlySet<string> = new Set([...streamNames, ...runnerNames]);
const unaryNames = Object.keys(VagrantService).filter((name): name is Unary => !otherNames.has(name));

function vagrantIn(to: RouteTo): VagrantApi {
  const routed = <Name extends string, Method>(names: readonly Name[], route: (name: Name) => Method) =>
    Object.fromEntries(names.map((name) => [name, route(name)])) as Record<Name, Method>;
  return {
    unary: routed(unaryNames, (name) => byLast(to, (apis) => apis.vagrant.unary[name])),
    streams: routed(streamNames, (name) => byLast(to, (apis) => apis.vagrant.streams[name])),
    runners: routed(runnerNames, (name) => byLast(to, (apis) => apis.vagrant.runners[name])),
  };
}
