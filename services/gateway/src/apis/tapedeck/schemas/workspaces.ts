import { z } from "zod";
import { count, text, time } from "./fields.ts";
import { progressLine } from "./stream.ts";

const seconds = (what: string) => z.number().nullable().describe(`${what}, in seconds; \`null\`: for ever.`);

export const workspaceName = text("The workspace.", "shop-team");

/** How long what is recorded in a workspace is kept. */
export const workspaceRetention = z.object({
  factsSeconds: seconds("How long sessions stay after their end"),
  textSeconds: seconds("How long text stays in the log"),
  isDefault: z.boolean().describe("It is that of the settings."),
});

export const workspace = z
  .object({
    workspace: workspaceName,
    state: z
      .enum(["recorded", "removed", "lost"])
      .describe(
        "`removed`: its log is gone, nothing of it is answered, and its rows are being deleted. `lost`: NATS has no log of it, but the tables do.",
      ),
    messages: count("Messages of its log. A message holds one event or several."),
    bytes: count("Size of its log."),
    oldestAt: time("When the oldest message of its log was recorded; `null`: it has none.").nullable(),
    newestAt: time("When the newest one was.").nullable(),
    tables: z
      .object({
        sources: count("Sources that were recorded."),
        events: count("Events that were recorded, erased ones too."),
        behindMessages: count("How many messages of the log the tables are behind."),
        query: text("The query that has them, as its `query.advertise` says; empty: the default one.", ""),
        waitsFor: z.string().nullable().describe("Why the log is not projected now; `null`: it is."),
      })
      .nullable()
      .describe("What its tables have; `null`: query does not answer."),
    retention: workspaceRetention.nullable().describe("How long it is kept; `null`: ingest does not answer."),
  })
  .describe("A workspace, with its log and its tables.");

export const removingWorkspace = progressLine({
  workspace: workspaceName,
  state: z
    .enum(["requested", "removing", "done"])
    .describe("`removing`: nothing is recorded there. `done`: nothing of it is answered any more."),
  messages: count("Messages that its log had; 0 until that is known."),
});
