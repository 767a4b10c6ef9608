import { UserIntentRequest } from "@tapedeck/proto/skaffold/v1/skaffold";
import { services } from "@tapedeck/shared/skaffold/methods";

type ControlStep = { readonly method: string; readonly request: Uint8Array };

/** The build starts at once, whether or not there is something to sync. */
const intents = ["build", "sync", "deploy"] as const;

/**
 * Skaffold forgets some of several intents in one request (each wakes the loop, and the loop's end clears them all), so
 * each becomes a step of its own, to be taken when the loop of the one before has ended. The caller gets its answer after
 * the first step; the record has the others. `devloop` is one intent for everything and stays as it is. (docs/upstreams/skaffold.md#execute-loses-intents)
 */
export function controlSteps(method: string, request: Uint8Array): readonly ControlStep[] {
  const steps = method === services.v1.execute.path ? intentsOf(request) : [];
  if (steps.length < 2) return [{ method, request }];
  return steps.map((intent) => ({ method, request: executeRequest(intent) }));
}

function intentsOf(request: Uint8Array): readonly (typeof intents)[number][] {
  try {
    const intent = UserIntentRequest.decode(request).intent;
    return intent === undefined || intent.devloop ? [] : intents.filter((name) => intent[name]);
  } catch {
    return []; // Skaffold's own answer to such a request is the best one.
  }
}

function executeRequest(intent: (typeof intents)[number]): Uint8Array {
  const none = { build: false, sync: false, deploy: false, devloop: false };
  return UserIntentRequest.encode({ intent: { ...none, [intent]: true } }).finish();
}
