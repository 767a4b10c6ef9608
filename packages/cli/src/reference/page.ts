import { maxValues } from "@tapedeck/shared/filter/filter";
import { largestPage } from "@tapedeck/shared/largest-page";
import { envName } from "@tapedeck/shared/service/settings";
import { allCommands } from "../commands/all.ts";
import { variablesTable } from "./commands.ts";
import { allSettings, type ReadSetting, type SettingsProgram } from "./definitions.ts";
import { nestedLists } from "./nested.ts";
import { code } from "./table.ts";
import { defaultText, formText } from "./values.ts";

/** A tapedeck.yaml with most of what people write there. */
export const example = `sources:
  - developer: alice
    project: shop
    address: 127.0.0.1:50051     # Skaffold's --rpc-port
    labels: { team: checkout }
    redact: on                   # mask secrets before they are stored
    logs: on                     # record the output of the application's containers
  - upstream: vagrant
    developer: dana
    project: shop
    address: 127.0.0.1:9701      # a server that outlives a command
  - upstream: rkt
    developer: node-1            # the host's name; the source is node-1/host
    address: 127.0.0.1:15441     # its rkt api-service
endpoints:                       # listeners bound to one source, for clients that cannot name one
  - source: alice/shop
    grpc: 127.0.0.1:50061
    http: 127.0.0.1:50062
    open: viewer                 # read without a token, if auth is tokens; on loopback only
`;

/** docs/settings.md, as the code has it. */
export async function settingsPage(): Promise<string> {
  const settings = allSettings();
  const commands = await allCommands();
  return `${[
    "# Settings",
    "<!-- Written from the code by `npm run docs`: change the settings there, not here. -->",
    howToSet,
    `\`\`\`yaml\n${example}\`\`\``,
    howToWrite,
    ...settingsOf(settings),
    ...limitsOf(settings),
    "## Environment only",
    "Commands, services and loggers read these; they are not keys of `tapedeck.yaml`. A flag takes precedence over its variable.",
    variablesTable(commands),
  ].join("\n\n")}\n`;
}

const howToSet = `Settings are flags of [\`tapedeck up\`](commands.md#up), environment variables, or keys of \`tapedeck.yaml\` in the current folder (or
\`--config FILE\`). The environment takes precedence over the file. Wrong or unknown settings stop the start, and one error lists all. A
service that is started by itself ignores unknown ones: they may be another service's.`;

const howToWrite = `A **duration** is a number with a unit: \`500ms\`, \`30s\`, \`10m\`, \`2h\`, \`30d\`. **Bytes** and counts are plain numbers. A **port** is 0
(any free one) to 65535. A **list of texts** is a YAML list; in the environment its items are separated by commas. \`sources\`,
\`endpoints\`, \`nats.logs\` and \`oidc.grants\` are JSON in the environment; their keys are below.`;

const several = "Several services";
const readByAll = "Gateway, query and ingest read these, unless others are named.";
const services = ["gateway", "query", "ingest"] as const;

const sections: readonly (readonly [title: string, isHere: (readBy: readonly SettingsProgram[]) => boolean])[] = [
  [several, (readBy) => readBy.length > 1],
  ["Gateway", (readBy) => isOnly(readBy, "gateway")],
  ["Query", (readBy) => isOnly(readBy, "query")],
  ["Ingest", (readBy) => isOnly(readBy, "ingest")],
  ["Bundled NATS and Postgres", (readBy) => isOnly(readBy, "tapedeck up")],
];

function isOnly(readBy: readonly SettingsProgram[], reader: SettingsProgram): boolean {
  return readBy.length === 1 && readBy[0] === reader;
}

const isLimit = ({ key }: ReadSetting) => key.startsWith("limits.");

function settingsOf(settings: readonly ReadSetting[]): readonly string[] {
  const others = settings.filter((setting) => !isLimit(setting));
  return sections.flatMap(([title, isHere]) => {
    const here = others.filter(({ readBy }) => isHere(readBy));
    return here.length === 0
      ? []
      : [`## ${title}`, ...(title === several ? [readByAll] : []), settingsList(here), ...here.flatMap(nestedSection)];
  });
}

function settingsList(settings: readonly ReadSetting[]): string {
  const isRule = ({ readBy }: ReadSetting) => readBy.length === 1 || readBy.length === services.length;
  return settings
    .map((setting) => `${start(setting)} ${setting.description}${isRule(setting) ? "" : readers(setting)}`)
    .join("\n");
}

/** The key, its variable, values and default. */
function start(setting: ReadSetting): string {
  const names = `${code(setting.key)} ${code(envName(setting.key))}`;
  const value = defaultText(setting);
  return `* ${names} (${formText(setting)}${value === "none" ? "" : `; default ${value}`}).`;
}

function readers({ readBy }: ReadSetting): string {
  return ` Read by ${readBy.join(", ")}.`;
}

function limitsOf(settings: readonly ReadSetting[]): readonly string[] {
  const limits = settings.filter(isLimit);
  const silent = limits.filter(({ past = "" }) => past === "");
  if (silent.length > 0) throw new Error(`limits without what happens past them: ${keysOf(silent)}`);
  const lines = limits.map(
    (limit) =>
      `${start(limit)} ${limit.description} Past it: ${(limit.past ?? "").replace(/\.?$/, ".")}${isOnly(limit.readBy, "gateway") ? "" : readers(limit)}`,
  );
  return ["## Limits", howLimitsHold, lines.join("\n"), fixedLimits];
}

function keysOf(settings: readonly ReadSetting[]): string {
  return settings.map(({ key }) => key).join(", ");
}

const howLimitsHold = `The gateway reads these, unless others are named. A limit applies per process. Limits per token apply per address to callers without a
token: at an endpoint that is \`open: viewer\`, and without authentication if they are set.`;

const fixedLimits = `Fixed: a page has at most ${largestPage.toLocaleString("en-US")} items, a field of a filter at most ${maxValues} values. A reader that disappears without
closing its connection is detected within 35 s, over HTTP (server-sent events too) with unacknowledged data by the operating system (Linux:
about 15 minutes).`;

function nestedSection(setting: ReadSetting): readonly string[] {
  const shapes = nestedLists(setting);
  if (shapes.length === 0) return [];
  const titled = ({ title }: { readonly title: string | undefined }) =>
    title === undefined ? [] : [`#### ${code(title)}`];
  return [`### ${setting.key}`, ...shapes.flatMap((shape) => [...titled(shape), shape.list])];
}
