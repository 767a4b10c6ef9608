import { parseFilter } from "@tapedeck/shared/filter/filter";
import type { DeveloperVisibility } from "@tapedeck/shared/service/common-settings";
import type { RktApi } from "../apis/rkt/methods.ts";
import type { SkaffoldApi } from "../apis/skaffold/skaffold-api.ts";
import { placed } from "../apis/tapedeck/list-request.ts";
import type { TapedeckApi } from "../apis/tapedeck/tapedeck-api.ts";
import type { VagrantApi } from "../apis/vagrant/methods.ts";
import type { Caller } from "../call-context.ts";
import { onlyDeveloper, refuseOthers } from "./own-developer.ts";

/** The APIs that serve what developers have recorded. The others are for admins, or take recordings. */
export type RecordApis = {
  readonly skaffold: SkaffoldApi;
  readonly rkt: RktApi;
  readonly vagrant: VagrantApi;
  readonly tapedeck: TapedeckApi;
};

type Viewer = Pick<Caller, "roles" | "developer">;

/** The APIs that a caller gets. */
type ApisOf = (viewer: Viewer) => RecordApis;

/** The APIs of more developers are not kept. */
const maxKept = 1_000;

/**
 * Serves each caller the APIs over what it may see: `all`, or those that `ownOf` makes over the log and the tables of one
 * developer. The types name every method, so that a new one is routed, too.
 */
export function apisByViewer(
  all: RecordApis,
  ownOf: (developer: string) => RecordApis,
  visibility: DeveloperVisibility,
): RecordApis {
  if (visibility === "shown") return all;
  const kept = new Map<string, RecordApis>();
  const to: ApisOf = (viewer) => {
    const developer = onlyDeveloper(visibility, viewer);
    if (developer === undefined) return all;
    const apis = kept.get(developer) ?? refusingOthers(ownOf(developer), developer);
    if (kept.size >= maxKept) kept.clear();
    kept.set(developer, apis);
    return apis;
  };
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
    vagrant: vagrantOf(all.vagrant, to),
    tapedeck: tapedeckOf(to),
  };
}

function tapedeckOf(to: ApisOf): TapedeckApi {
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

function vagrantOf({ unary, streams, runners }: VagrantApi, to: ApisOf): VagrantApi {
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

/** A method whose first argument is, or has, the caller. */
function byFirst<First extends Viewer, After extends readonly unknown[], Answer>(
  to: ApisOf,
  method: (apis: RecordApis) => (first: First, ...args: After) => Promise<Answer>,
): (first: First, ...args: After) => Promise<Answer> {
  return async (first, ...args) => method(to(first))(first, ...args);
}

/** Likewise by the last argument. */
function byLast<Before extends readonly unknown[], Last extends Viewer, Answer>(
  to: ApisOf,
  method: (apis: RecordApis) => (...args: [...Before, Last]) => Promise<Answer>,
): (...args: [...Before, Last]) => Promise<Answer> {
  return async (...args) => method(to(args.at(-1) as Last))(...args);
}

/** The log of one developer answers nothing about others. A stream of one of them would wait for ever. */
function refusingOthers(apis: RecordApis, developer: string): RecordApis {
  const { tapedeck } = apis;
  return {
    ...apis,
    tapedeck: {
      ...tapedeck,
      async events(request, viewer) {
        refuseOthers(developer, request.filter);
        return tapedeck.events(request, viewer);
      },
      async subscribe(request, context) {
        refuseOthers(developer, placed(parseFilter(request.filter ?? {}), context));
        return tapedeck.subscribe(request, context);
      },
    },
  };
}
