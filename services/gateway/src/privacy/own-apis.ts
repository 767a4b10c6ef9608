import { parseFilter } from "@tapedeck/shared/filter/filter";
import type { DeveloperVisibility } from "@tapedeck/shared/service/common-settings";
import { placed } from "../apis/tapedeck/list-request.ts";
import type { Caller } from "../call-context.ts";
import type { RecordApis } from "../workspaces/routed-apis.ts";
import { onlyDeveloper, refuseOthers } from "./own-developer.ts";

/** The APIs of a workspace that a caller gets. */
export type ViewerApis = (viewer: Pick<Caller, "roles" | "developer">) => RecordApis;

/** The APIs of more developers are not kept. */
const maxKept = 1_000;

/** Gives each caller `all`, or the APIs that `ownOf` makes over the log and the tables of one developer. */
export function viewerApis(
  all: RecordApis,
  ownOf: (developer: string) => RecordApis,
  visibility: DeveloperVisibility,
): ViewerApis {
  const kept = new Map<string, RecordApis>();
  return (viewer) => {
    const developer = onlyDeveloper(visibility, viewer);
    if (developer === undefined) return all;
    const apis = kept.get(developer) ?? refusingOthers(ownOf(developer), developer);
    if (kept.size >= maxKept) kept.clear();
    kept.set(developer, apis);
    return apis;
  };
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
