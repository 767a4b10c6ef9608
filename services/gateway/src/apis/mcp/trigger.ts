import { UserIntentRequest } from "@tapedeck/proto/skaffold/v1/skaffold";
import { z } from "zod";
import { type ControlMethod, skaffoldMethods } from "../skaffold/methods.ts";
import { Answer, minTokens } from "./answer.ts";
import { endOfLog, sourceField } from "./named-side.ts";
import { tool } from "./tool.ts";

export const trigger = tool({
  name: "trigger",
  title: "Build, sync or deploy now",
  description:
    "Makes a running Skaffold build, sync or deploy what has changed, now. It changes what runs in the cluster: use it only when the user asks for that. " +
    "Skaffold does not say how it goes: call wait_for_loop with the position of the answer.",
  controls: true,
  input: z.strictObject({
    source: sourceField.optional().describe("`alice/shop`. Default: the only Skaffold there is."),
    action: z.enum(["build", "sync", "deploy"]),
  }),
  async answer({ source, action }, call) {
    const { apis, context } = call;
    // The first effects may be recorded before the answer.
    const position = await endOfLog(call);
    const intent = { build: false, sync: false, deploy: false, devloop: false, [action]: true };
    const request = UserIntentRequest.encode({ intent }).finish();
    await apis.skaffold.control(execute, request, { ...context, ...(source !== undefined && { source }) });
    const answer = new Answer(minTokens);
    answer.add(`Skaffold has taken the request to ${action}. With nothing changed, nothing runs.`);
    answer.add(`Call wait_for_loop with after ${position} to see how it goes.`);
    return answer.end({ position, again: "it would build, sync or deploy again." });
  },
});

const execute = skaffoldMethods.find(
  (method): method is ControlMethod => method.kind === "control" && method.action === "execute" && method.api === "v1",
) as ControlMethod;
