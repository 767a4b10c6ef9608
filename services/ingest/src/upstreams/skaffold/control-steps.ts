import { UserIntentRequest } from "@tapedeck/proto/skaffold/v1/skaffold";
import { TriggerRequest } from "@tapedeck/proto/skaffold/v2/skaffold";
import { services } from "./methods.ts";

type ControlStep = { readonly method: string; readonly request: Uint8Array };

/** v2's control calls that act when they are made on v1 instead; there they do nothing (the messages are the same). */
const actingMethods: ReadonlyMap<string, string> = new Map(
  (["execute", "autoBuild", "autoSync", "autoDeploy"] as const).map((name) => [
    services.v2[name].path,
    services.v1[name].path,
  ]),
);
const autoMethods: ReadonlySet<string> = new Set(
  (["autoBuild", "autoSync", "autoDeploy"] as const).map((name) => services.v2[name].path),
);

/** The order in which a dev loop does them. */
const intents = ["sync", "build", "deploy"] as const;

/**
 * Skaffold forgets some of several intents in one request (each wakes the loop, and the loop's end clears them all), so
 * each becomes a step of its own, to be taken when the loop of the one before has ended. `devloop` is one intent for
 * everything and stays as it is.
 */
export function controlSteps(method: string, request: Uint8Array): readonly ControlStep[] {
  const acting = actingMethods.get(method) ?? method;
  const translated = autoMethods.has(method) ? withEnabled(request) : request;
  if (acting !== services.v1.execute.path) return [{ method: acting, request: translated }];
  const wanted = intentsOf(request);
  if (wanted.length < 2) return [{ method: acting, request }];
  return wanted.map((intent) => ({ method: acting, request: executeRequest(intent) }));
}

function intentsOf(request: Uint8Array): readonly (typeof intents)[number][] {
  try {
    const intent = UserIntentRequest.decode(request).intent;
    return intent === undefined || intent.devloop ? [] : intents.filter((name) => intent[name]);
  } catch {
    return []; // Skaffold's own answer to it is the best one.
  }
}

function executeRequest(intent: (typeof intents)[number]): Uint8Array {
  const none = { build: false, sync: false, deploy: false, devloop: false };
  return UserIntentRequest.encode({ intent: { ...none, [intent]: true } }).finish();
}

/** v2 takes a missing `enabled` for false, v1 refuses it. */
function withEnabled(request: Uint8Array): Uint8Array {
  try {
    if (TriggerRequest.decode(request).state?.val !== undefined) return request;
    return TriggerRequest.encode({ state: { val: { $case: "enabled", value: false } } }).finish();
  } catch {
    return request;
  }
}
