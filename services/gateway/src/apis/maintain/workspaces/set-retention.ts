import type { SetRetentionRequest_Period } from "@tapedeck/proto/tapedeck/v1/maintain";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { durationForm, durationMs } from "@tapedeck/shared/service/duration";
import { isNamePart, nameForm } from "@tapedeck/shared/source";
import { z } from "zod";
import type { CallContext } from "../../../call-context.ts";
import type { MaintainClient } from "../../../maintain-client.ts";
import { retentionIn, type WorkspaceRetention } from "./list-workspaces.ts";

const period = z
  .string()
  .describe(
    "A duration such as `90d`, 1s or more; `forever`; or `default`: as the settings say. Absent: stays as it is.",
  );

export const retentionRequest = z.strictObject({ facts: period.optional(), text: period.optional() });

export type RetentionRequested = z.infer<typeof retentionRequest>;

/** Changes how long what is recorded in a workspace is kept; resolves with what holds from now on. */
export async function setRetention(
  { setRetention: set }: Pick<MaintainClient, "setRetention">,
  workspace: string,
  body: unknown,
  { who, kind, token = "", signal }: Pick<CallContext, "who" | "kind" | "token" | "signal">,
): Promise<WorkspaceRetention> {
  if (!isNamePart(workspace)) throw invalidArgument(`a workspace's name is ${nameForm}`, "workspace");
  const requested = retentionRequest.safeParse(body);
  if (!requested.success) throw invalidArgument('the body is such as {"facts": "90d", "text": "default"}', "retention");
  const facts = periodOf("facts", requested.data.facts);
  const text = periodOf("text", requested.data.text);
  if (facts === undefined && text === undefined) throw invalidArgument("neither facts nor text is given", "retention");
  const [answer] = await Array.fromAsync(set({ workspace, facts, text, who, kind, by: token }, signal));
  if (answer === undefined) throw new TapedeckError("not_ready", "ingest did not answer: try again in a moment");
  return retentionIn(answer, false);
}

function periodOf(field: string, value: string | undefined): SetRetentionRequest_Period | undefined {
  if (value === undefined) return undefined;
  if (value === "forever") return { kept: { $case: "forever", value: true } };
  if (value === "default") return { kept: { $case: "default", value: true } };
  const ms = durationMs(value);
  if (ms === undefined || ms < 1_000)
    throw invalidArgument(`${field}: expected ${durationForm} of 1s or more, "forever" or "default"`, field);
  return { kept: { $case: "seconds", value: BigInt(Math.ceil(ms / 1_000)) } };
}
