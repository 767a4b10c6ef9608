import { z } from "zod";
import type { SettingsReader } from "../../service/settings.ts";
import { isNamePart, nameForm } from "../../source.ts";

/** What the log of a workspace has that others need not have. */
export type LogSettings = {
  /** How many servers of a cluster keep it. */
  readonly replicas: number;
  /** The tags of the servers that may keep it; empty: any may. */
  readonly placement: readonly string[];
  /** How many bytes it may take; undefined: as many as there are. */
  readonly maxBytes: number | undefined;
};

/** The settings of the workspaces that one of the patterns matches. */
export type LogSettingsEntry = { readonly [Name in keyof LogSettings]?: LogSettings[Name] | undefined } & {
  readonly workspaces: readonly string[];
};

const patternSchema = z.string().refine(isWorkspacePattern, {
  error: ({ input }) => `"${input}" is no workspace and no pattern of some: a name is ${nameForm}`,
});

const entrySchema = z.strictObject({
  workspaces: z
    .array(patternSchema)
    .min(1)
    .meta({ form: "list of texts", description: "Names, or patterns such as `team-*`." }),
  replicas: z.int().min(1).max(5).optional().meta({
    form: "integer",
    defaultText: "`nats.replicas`",
    description: "How many servers keep these logs. A log with fewer gets them when a service starts.",
  }),
  placement: z.array(z.string().min(1)).min(1).optional().meta({
    form: "list of texts",
    defaultText: "any server",
    description:
      "Tags (`server_tags` of NATS) that a server must have to keep these logs. It holds for logs that begin.",
  }),
  maxBytes: z
    .number()
    .min(1_048_576)
    .refine(Number.isSafeInteger, { error: "expected a whole number" })
    .optional()
    .meta({
      form: "bytes ≥ 1048576",
      defaultText: "none",
      description:
        "How large each of these logs may grow. A full one records nothing more until it has room ([what to do](operations.md#tapedeckworkspacefull)); the others go on.",
    }),
});

const schema = z.array(entrySchema, {
  error: "expected a list of logs, such as [{ workspaces: [team-a], maxBytes: 50000000000 }]",
});

/** Reads the logs that differ from the others. */
export function logSettings(read: SettingsReader): readonly LogSettingsEntry[] {
  return read.custom<readonly LogSettingsEntry[], readonly LogSettingsEntry[]>("nats.logs", schema, [], {
    description: "Logs of some workspaces that differ from the others. The first entry that names a workspace holds.",
  });
}

/** Names and patterns of workspaces: `*` stands for any characters. */
export function isWorkspacePattern(pattern: string): boolean {
  return isNamePart(pattern.replaceAll("*", "x"));
}

export function matchesWorkspace(pattern: string, workspace: string): boolean {
  // Names have no other character that means something in an expression.
  return new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(workspace);
}

/** The settings of a workspace's log. */
export function logSettingsOf(
  {
    logs = [],
    replicas = 1,
  }: { readonly logs?: readonly LogSettingsEntry[] | undefined; readonly replicas?: number | undefined },
  workspace: string,
): LogSettings {
  const own = logs.find(({ workspaces }) => workspaces.some((pattern) => matchesWorkspace(pattern, workspace)));
  return { replicas: own?.replicas ?? replicas, placement: own?.placement ?? [], maxBytes: own?.maxBytes };
}
