import { hostname } from "node:os";
import type { SettingsReader } from "@tapedeck/shared/service/settings";
import { isNamePart, nameForm } from "@tapedeck/shared/source";
import { z } from "zod";
import { type Address, addressText } from "../transports/address.ts";
import { type SinkDefinition, sinkNameForm, sinkNamePattern } from "./definition.ts";
import { formatError, sinkFields } from "./requests.ts";
import { type AllowedHosts, allowedHostError, targetError } from "./target/target-url.ts";

/** A sink of the operator's settings. */
export type ConfiguredSink = { readonly workspace: string; readonly sink: string; readonly definition: SinkDefinition };

/** What the operator has set for sinks. */
export type SinkSettings = {
  readonly sinks: readonly ConfiguredSink[];
  readonly allowed: AllowedHosts;
  /** The address of the page, without a slash at its end, for links. */
  readonly page: string;
  /** The same where a setting names it. */
  readonly givenPage?: string | undefined;
  /** Why the page may not be there; undefined: no setting is missing. */
  readonly pageDoubt?: string | undefined;
};

const sinkSchema = z.strictObject({
  name: z
    .string()
    .regex(sinkNamePattern, `expected ${sinkNameForm}`)
    .meta({ description: "Its name, unique in its workspace; its cursor is kept by it.", form: "text" }),
  workspace: z
    .string()
    .refine(isNamePart, `expected ${nameForm}`)
    .optional()
    .meta({ description: "The workspace; by default that of the settings.", form: "text" }),
  ...sinkFields,
});

/** Checks each sink by itself, so that what is wrong with one is said beside what is wrong with others. */
const sinksSchema = (allowed: AllowedHosts) =>
  z.array(
    sinkSchema.superRefine((sink, context) => {
      const ofTarget = targetError(sink.target, allowed);
      if (ofTarget !== undefined) context.addIssue({ code: "custom", path: ["target"], message: ofTarget });
      const mismatch = formatError(sink);
      if (mismatch !== undefined) context.addIssue({ code: "custom", path: [mismatch.field], message: mismatch.error });
    }),
  );

export type SinkDefaults = {
  readonly workspace: string;
  /** The page's address, as other settings have it. */
  readonly page: string | undefined;
  /** Where HTTP listens. */
  readonly http: Address;
  readonly hasTls: boolean;
};

export function sinkSettings(
  read: SettingsReader,
  { workspace, page: known, http, hasTls }: SinkDefaults,
): SinkSettings {
  const written = read.string("gateway.pageUrl", undefined, {
    description:
      "The page's address, for links in what [sinks](sinks.md) send and [MCP](mcp.md) answers; without it `oidc.pageUrl`, or where HTTP listens, with this machine's name if that is every address.",
  });
  const given = written ?? known;
  const page = given ?? `${hasTls ? "https" : "http"}://${addressText(dialledAddress(http))}`;
  if (!isPageAddress(page))
    read.addError(`gateway.pageUrl: "${page}" is not the address of the page: expected http(s)://host[:port][/path]`);
  const allowed = read.list("gateway.sinkHosts", [], {
    description:
      "Hosts, as a name or `host:port`, to which [sinks](sinks.md) may deliver although they are on this machine or in a private network, or without TLS.",
  });
  for (const host of allowed) {
    const error = allowedHostError(host);
    if (error !== undefined) read.addError(`gateway.sinkHosts: ${error}`);
  }
  type Written = readonly z.infer<typeof sinkSchema>[];
  const configuredSinks = read.custom<Written, Written>("sinks", sinksSchema(allowed), [], {
    description: "Sinks: where events are delivered as they are recorded ([sinks](sinks.md)).",
  });
  const sinks = configuredSinks.map(({ name, workspace: own, ...fields }) =>
    configured(own ?? workspace, name, fields),
  );
  for (const [index, { workspace: of, sink }] of sinks.entries()) {
    const isTwice = sinks.findIndex((one) => one.workspace === of && one.sink === sink) !== index;
    if (isTwice) read.addError(`sinks.${index}.name: ${sink} is listed twice`);
  }
  const pageDoubt = given === undefined ? doubtOf(http, page) : undefined;
  return { sinks, allowed, page: withoutSlash(page), givenPage: given && withoutSlash(given), pageDoubt };
}

function withoutSlash(address: string): string {
  return address.replace(/\/+$/, "");
}

const isEveryAddress = (host: string): boolean => ["0.0.0.0", "::", ""].includes(host);

function dialledAddress({ host, port }: Address): Address {
  return { host: isEveryAddress(host) ? hostname() || "localhost" : host, port };
}

function doubtOf({ host, port }: Address, page: string): string | undefined {
  if (!isEveryAddress(host) && port !== 0) return undefined;
  return `gateway.pageUrl is missing: links in what sinks send lead to ${page}, which may not be the page`;
}

function isPageAddress(text: string): boolean {
  const url = URL.parse(text);
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  return isHttp && url.search === "" && url.hash === "" && url.username === "" && url.password === "";
}

type Fields = Omit<z.infer<typeof sinkSchema>, "name" | "workspace">;

function configured(workspace: string, sink: string, { secret, ...fields }: Fields): ConfiguredSink {
  return { workspace, sink, definition: { ...fields, ...(secret !== undefined && { secret }), createdAt: "" } };
}
