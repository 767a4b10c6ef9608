import type { NatsSettings } from "@tapedeck/shared/service/nats";
import type { SettingsReader } from "@tapedeck/shared/service/settings";
import { isNamePart, nameForm } from "@tapedeck/shared/source";
import { z } from "zod";
import { splitAddress } from "../transports/address.ts";

/** A shard beside home: a log with an ingest and a query of its own. */
export type ShardConfig = {
  readonly name: string;
  readonly nats: NatsSettings;
  /** "host:port". */
  readonly query: string;
  readonly ingest: string;
  /** Those that begin here. One that is recorded in another shard stays there. */
  readonly workspaces: readonly string[];
  /** It takes a part of the new workspaces that no shard lists. */
  readonly newWorkspaces: boolean;
};

/** The shard that the settings `nats`, `query.address` and `ingest.address` name. */
export const homeShard = "home";

const name = z.string({ error: `expected ${nameForm}` }).refine(isNamePart, `expected ${nameForm}`);

const address = z
  .string({ error: "expected host:port" })
  .refine((text) => splitAddress(text) !== undefined, "expected host:port, such as 10.0.0.2:7053");

const nats = z.strictObject(
  {
    url: z.string({ error: "expected a URL, such as nats://10.0.0.2:4222" }).min(1),
    user: z.string().optional(),
    password: z.string().optional(),
    ca: z.string().optional(),
    syncAlways: z.boolean().optional(),
  },
  { error: "expected { url, user, password, ca, syncAlways }" },
);

const shard = z.strictObject({
  name: name
    .refine((text) => text !== homeShard, `"${homeShard}" is the shard of the other settings: choose another name`)
    .meta({ description: "The shard's name. It is stored with each workspace, so it stays.", form: "name" }),
  workspaces: z
    .array(name, { error: "expected a list of workspaces" })
    .default([])
    .meta({ description: "Workspaces that begin here.", form: "list of names", defaultText: "none" }),
  newWorkspaces: z.boolean({ error: "expected true or false" }).default(false).meta({
    description: "Takes some of the new workspaces that no shard lists. Without such a shard they go to home.",
    form: "`true`, `false`",
  }),
  nats: nats.meta({
    description: "The shard's NATS: as `nats.url`, `nats.user`, `nats.password`, `nats.ca`, `nats.syncAlways`.",
    form: "mapping",
  }),
  query: address.meta({ description: "Address of the shard's query.", form: "`host:port`" }),
  ingest: address.meta({ description: "Address of the shard's ingest.", form: "`host:port`" }),
});

const shards = z.array(shard, { error: "expected a list of shards" }).superRefine((all, context) => {
  const [names, listed] = [new Set<string>(), new Map<string, string>()];
  for (const [index, { name, workspaces }] of all.entries()) {
    const addError = (message: string) => context.addIssue({ code: "custom", path: [index], message });
    if (names.has(name)) addError(`the name "${name}" is listed twice`);
    names.add(name);
    for (const workspace of workspaces) {
      const other = listed.get(workspace);
      if (other !== undefined) addError(`the workspace "${workspace}" is listed by "${other}" already`);
      listed.set(workspace, name);
    }
  }
});

/** `workspace`: that of callers without a token, which is in home. */
export function shardSettings(
  read: SettingsReader,
  { workspace, auth }: { readonly workspace: string; readonly auth: "none" | "tokens" },
): readonly ShardConfig[] {
  const found = read.custom<readonly ShardConfig[], readonly ShardConfig[]>("shards", shards, [], {
    description: "Further logs that this gateway serves ([scale](scale.md#shards)).",
  });
  if (found.length > 0 && auth === "none") {
    read.addError("shards: they need auth: tokens, because all callers without a token are in one workspace");
  }
  for (const { name } of found.filter(({ workspaces }) => workspaces.includes(workspace))) {
    read.addError(`shards: "${name}" lists "${workspace}", which is the setting workspace and so in ${homeShard}`);
  }
  return found;
}
