import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { z } from "zod";
import { Answer, sourceText, textField, tokensField, withoutSilence } from "./answer.ts";
import { atField, sessionField, sessionNamed, sourceField } from "./named-side.ts";
import { outline, valueAt } from "./outline.ts";
import { tool } from "./tool.ts";

export const getState = tool({
  name: "get_state",
  title: "State, now or at a moment",
  description:
    "The state of a source as its tool reports it: Skaffold's builds, deploys, checks and resources; rkt's pods and images; Vagrant's jobs and machines. Large parts are shown as their size: ask for one with `path`.",
  input: z.strictObject({
    source: sourceField
      .optional()
      .describe("`alice/shop`, or with `/upstream`. Default: that of `session`, or the only source there is."),
    session: sessionField.optional().describe("The state of this session. Default: the newest of the source."),
    at: atField,
    path: textField.max(1_000).optional().describe("Only a part of the state, such as `v1.deployState`."),
    tokens: tokensField,
  }),
  async answer({ source: named, session, at, path, tokens }, call) {
    const { apis, context, page } = call;
    const source = named ?? (session && (await sessionNamed(call, session)).source);
    const scope = { ...(source && { source }), ...(session && { session }), ...(at && { at }) };
    const found = await apis.tapedeck.state({ ...context, ...scope });
    const part = path === undefined ? found.state : valueAt(found.state, path);
    if (part === undefined)
      throw new TapedeckError(
        "not_found",
        `the state has no "${path}": its parts are ${Object.keys(found.state).join(", ")}`,
      );
    const answer = new Answer(tokens);
    const process =
      found.session === null
        ? "no session"
        : `session ${found.session}${found.sessionEnded ? ", which has ended" : ""}`;
    answer.add(`State of ${sourceText(found.source)}${path === undefined ? "" : `, ${path}`} (${process}):`);
    if (found.notHeardSince !== null) answer.add(`Not heard since ${found.notHeardSince}: it may have changed.`);
    const { json, isWhole } = outline(part, answer.left);
    answer.add(json);
    if (!isWhole) answer.leaveOut("what is shown as a size. Ask with the `path` of a part, or more `tokens`.");
    const { position } = found;
    const again = call.again({ source: sourceText(found.source), at: position });
    const address = `${page}/sessions/${found.session}?${new URLSearchParams({ at: position })}`;
    return answer.end({
      position,
      again: found.notHeardSince !== null ? `${again} ${withoutSilence}` : again,
      ...(found.session !== null && { page: { address } }),
    });
  },
});
