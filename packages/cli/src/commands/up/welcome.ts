import { relative } from "node:path";
import { commandToStart } from "@tapedeck/shared/installation";
import { shellWord } from "@tapedeck/shared/output/shell-word";
import { isLoopback } from "@tapedeck/shared/service/loopback";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { coloured } from "../../display/colour.ts";
import type { GatewayAccess } from "../../local-server/settings.ts";

export type Welcome = {
  readonly mode: "demo" | "record";
  readonly access: GatewayAccess;
  readonly addresses: Readonly<Record<string, string>>;
  readonly storeDir: string;
  /** The settings file without sources because of which no demo plays; undefined: a demo plays, or was turned off. */
  readonly demoOffBy?: string | undefined;
  /** "Alice B/shop" as its user wrote it, "alice-b/shop" as it is asked for, and the address that is dialled. */
  readonly sources: readonly WelcomeSource[];
  /** Connection string of the read-only role; undefined for an external database. */
  readonly analystUrl: string | undefined;
  /** How this program is called: "tapedeck" where that is on the path, else in the checkout, and anywhere. */
  readonly program: { readonly here: string; readonly anywhere: string };
  /** Variables by which commands in another terminal find this Tapedeck, where it is not as they expect it. */
  readonly variables: Readonly<Record<string, string>>;
  /** Spills of earlier runs that wait to be taken. */
  readonly waiting: number;
};

export type WelcomeSource = {
  readonly upstream: UpstreamName;
  readonly name: string;
  readonly id: string;
  readonly address: string;
};

/** The text shown when everything runs: addresses, what to try, what to do next. Fits 80 columns. */
export function welcome(options: Welcome): string {
  // Nothing is recorded yet, so there is nothing to inspect.
  const isEmpty = options.mode === "record" && options.sources.length === 0;
  const [first, second] = isEmpty ? [next(options), toTry(options)] : [toTry(options), next(options)];
  const parts = [headlines(options), places(options), first, second].filter((lines) => lines.length > 0);
  return parts.flatMap((lines) => [...lines, ""]).join("\n");
}

function headlines(options: Welcome): string[] {
  const { demoOffBy } = options;
  if (demoOffBy === undefined) return [headline(options)];
  const file = relative(process.cwd(), demoOffBy) || demoOffBy;
  return [headline(options), `${file} has no sources; for the demo: ${commandToStart("--demo")}`];
}

function headline({ mode, sources }: Welcome): string {
  if (mode === "demo") return bold("Tapedeck plays a demo: recordings of Skaffold, Vagrant and rkt.");
  const [only] = sources;
  if (only === undefined) return bold("Tapedeck is running and records what `tapedeck run` and other taps push.");
  if (sources.length === 1) return bold(`Tapedeck records ${only.name} from ${only.address}.`);
  return bold(`Tapedeck records ${sources.length} sources.`);
}

/** Uses the host name of the certificate, and one that can be dialled if the gateway listens on all interfaces. */
function reachable(address = "", { tls, hostName = "localhost" }: GatewayAccess): string {
  const isEverywhere = /^(0\.0\.0\.0|\[::\]):/.test(address);
  return tls || isEverywhere ? address.replace(/^.*(?=:\d+$)/, hostName) : address;
}

/** An endpoint on loopback is reachable under no other name. */
function endpointAddress(address: string, access: GatewayAccess): string {
  return isLoopback(address.replace(/:\d+$/, "")) ? address : reachable(address, access);
}

function httpUrl({ addresses, access }: Pick<Welcome, "addresses" | "access">): string {
  return `${access.tls ? "https" : "http"}://${reachable(addresses.http, access)}`;
}

/** Options of curl and grpcurl by which the token goes with a call. */
const tokenHeader = '-H "authorization: Bearer $TAPEDECK_TOKEN"';

function places({ addresses, access, storeDir, sources, mode }: Welcome): string[] {
  const ways = [access.tls ? "TLS" : "", access.auth === "tokens" ? "tokens (tapedeck token create)" : ""];
  const protection = ways.filter((text) => text !== "").join(", ");
  const endpoints = Object.entries(addresses).filter(([name]) => name.includes("/"));
  return [
    row("HTTP, WebSocket", httpUrl({ addresses, access })),
    row("gRPC", reachable(addresses.grpc, access)),
    ...endpoints.map(([name, address]) => row(name, endpointAddress(address, access))),
    ...(protection === "" ? [] : [row("access", protection)]),
    row("Postgres", addresses.postgres ?? "-"),
    row("data", relative(process.cwd(), storeDir) || storeDir),
    ...sourceRows(mode, sources),
  ];
}

function sourceRows(mode: Welcome["mode"], sources: Welcome["sources"]): string[] {
  if (mode === "demo") return [row("sources", sources.map(({ name }) => name).join(", "))];
  if (sources.length < 2) return [];
  return sources.map(({ name, address }, at) => row(at === 0 ? "sources" : "", `${name} (${address})`));
}

/** What `tapedeck state` shows of the first source of each upstream. */
const stateRemarks: Readonly<Record<UpstreamName, string>> = {
  skaffold: "what is built and deployed now",
  vagrant: "a Vagrant project's machines",
  rkt: "the pods and images of a rkt host",
};

function toTry(options: Welcome): string[] {
  const { sources, program } = options;
  const states = Object.entries(stateRemarks).flatMap(([name, remark]) => {
    const first = sources.find(({ upstream }) => upstream === name);
    return first === undefined ? [] : [command(`${program.here} state -s ${first.id}`, remark)];
  });
  return [
    bold("Try, in another terminal:"),
    ...findingIt(options),
    ...lettingIn(options),
    command(`${program.here} open`, "the page, in a browser"),
    command(`${program.here} watch`, "what everybody's loop does now"),
    ...whyToTry(options),
    command(`${program.here} tail`, "events as they happen"),
    ...states,
    ...moreToTry(options),
  ];
}

/** The demo's bob breaks his manifests every minute or so. */
function whyToTry({ mode, sources, program }: Welcome): string[] {
  const failing = mode === "demo" ? "bob/shop" : sources.find(({ upstream }) => upstream !== "rkt")?.id;
  if (sources.length > 0 && failing === undefined) return [];
  return [command(`${program.here} why ${failing ?? ""}`.trimEnd(), "why the newest failed loop failed")];
}

function findingIt({ variables }: Welcome): string[] {
  const set = Object.entries(variables).map(([name, value]) => `${name}=${shellWord(value)}`);
  return set.length === 0 ? [] : [command(`export ${set.join(" \\\n    ")}`, "where commands find this Tapedeck")];
}

function lettingIn({ access, program: { here } }: Welcome): string[] {
  if (access.auth === "none") return [];
  const make = `${here} token create --name me --role admin --developer me -q`;
  return [command(`export TAPEDECK_TOKEN=$(\\\n    ${make})`, "gives you access for 90 days")];
}

/** Shows one upstream only, to keep the text short. */
function moreToTry(options: Welcome): string[] {
  const first = (name: UpstreamName) => options.sources.find(({ upstream }) => upstream === name);
  const [skaffold, vagrant, rkt] = [first("skaffold"), first("vagrant"), first("rkt")];
  if (skaffold !== undefined) return skaffoldToTry(options, skaffold);
  if (vagrant !== undefined) return vagrantToTry(options, vagrant);
  return rkt === undefined ? skaffoldToTry(options, undefined) : rktToTry(options, rkt);
}

function skaffoldToTry(
  { addresses, access, program: { here }, analystUrl }: Welcome,
  skaffold: WelcomeSource | undefined,
) {
  // The log may hold more sources than are configured now.
  const source = skaffold === undefined ? "" : `?source=${skaffold.id}`;
  const sql = "select artifact, count(*) from tapedeck.build_times group by 1";
  const url = httpUrl({ addresses, access });
  const curl = access.auth === "tokens" ? `curl ${tokenHeader} \\\n    ` : "curl ";
  return [
    ...(skaffold === undefined ? [command(`${here} state`, "what is built and deployed now")] : []),
    command(`${here} stats builds`, "how long builds take"),
    command(`${curl}-N '${url}/v1/events${source}'`, "Skaffold's own API, for any number of readers"),
    analystUrl === undefined ? command(`${curl}'${url}/v1/state${source}'`, "and its state") : inSql(analystUrl, sql),
  ];
}

function grpcurl({ access }: Welcome): string {
  const token = access.auth === "tokens" ? [tokenHeader] : [];
  return ["grpcurl", ...(access.tls ? [] : ["-plaintext"]), ...token].join(" ");
}

function rktToTry(options: Welcome, { id }: WelcomeSource) {
  const { addresses, access, program, analystUrl } = options;
  const sql = "select app, exit_code, count(*) from tapedeck.rkt_apps group by 1, 2";
  const call = `-H 'tapedeck-source: ${asHeader(id)}' ${reachable(addresses.grpc, access)} v1alpha.PublicAPI/ListenEvents`;
  return [
    command(`${program.here} tail -s ${id} -k 'pod.*'`, "its pods alone"),
    command(`${grpcurl(options)} \\\n    ${call}`, "rkt's own API, with the events that rkt itself never sends"),
    ...(analystUrl === undefined ? [] : [inSql(analystUrl, sql)]),
  ];
}

function vagrantToTry(options: Welcome, { id }: WelcomeSource) {
  const { addresses, access, program, analystUrl } = options;
  const sql = "select command, outcome, duration_ms from tapedeck.command_times";
  const metadata = `-H 'tapedeck-source: ${asHeader(id)}' -H 'client-api-protocol: 1,1'`;
  const call = `${reachable(addresses.grpc, access)} hashicorp.vagrant.Vagrant/_ListJobs`;
  return [
    command(`${program.here} tail -s ${id} -k terminal.written`, "what its commands print"),
    command(
      `${grpcurl(options)} \\\n    ${metadata} \\\n    ${call}`,
      "Vagrant's own API, with the jobs of all commands",
    ),
    ...(analystUrl === undefined ? [] : [inSql(analystUrl, sql)]),
  ];
}

function inSql(url: string, sql: string): string {
  return command(`psql ${url} \\\n    -c '${sql}'`, "the same in SQL");
}

function next({ mode, sources, program, waiting }: Welcome): string[] {
  const held = waiting === 1 ? "one recorded run waits" : `${waiting} recorded runs wait`;
  const spills = waiting > 0 && mode === "demo" ? [`  (${held} to be delivered: ${commandToStart("--no-demo")})`] : [];
  if (mode === "record") {
    if (sources.length > 0 && sources.every(({ upstream }) => upstream === "rkt")) return [];
    return [bold("Next, in your project's folder:"), ...commandsToRecord(program.anywhere)];
  }
  return [
    bold("Next: record your own. Stop the demo (Ctrl-C), then"),
    command(commandToStart("--no-demo"), "and, in your project's folder,"),
    ...commandsToRecord(program.anywhere),
    bold("or"),
    command(
      commandToStart("--skaffold", "127.0.0.1:50051", "--project", "shop"),
      "beside a skaffold dev --rpc-port 50051",
    ),
    command(commandToStart("--vagrant", "127.0.0.1:9701"), "a Vagrant server that outlives a command"),
    command(commandToStart("--rkt", "127.0.0.1:15441"), "a host's rkt api-service"),
    ...spills,
  ];
}

function commandsToRecord(program: string): string[] {
  return [
    command(`${program} run -- skaffold dev`, "records any Skaffold; needs no ports or flags"),
    command(`${program} run -- vagrant-go up`, "and a Vagrant that has a server"),
  ];
}

function row(name: string, value: string): string {
  return `  ${coloured("dim", name.padEnd(15))}  ${value}`;
}

const column = 42;
const columns = 80;

/** The remark beside the command, or below it where one of them is long. */
function command(text: string, remark: string): string {
  const line = `  ${coloured("cyan", text)}`;
  const width = text.length + 2;
  return width < column && column + remark.length <= columns
    ? `${line}${" ".repeat(column - width)}${coloured("dim", remark)}`
    : `${line}\n${" ".repeat(4)}${coloured("dim", remark)}`;
}

function bold(text: string): string {
  return coloured("bold", text);
}

/** A header is ASCII, so other characters of a name are percent-encoded. */
function asHeader(source: string): string {
  return source.split("/").map(encodeURIComponent).join("/");
}
