import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { loadSecrets, type Secrets } from "@tapedeck/infra/local/secrets";
import { namePart, sourceName } from "@tapedeck/shared/source";
import { CommandError, sentenceOf } from "../../command-error.ts";
import { print } from "../../display/output.ts";
import type { GrpcTarget } from "../../grpc-target.ts";
import { checkDataFolder } from "../../local-server/data-folder.ts";
import { lockUp } from "../../local-server/lock.ts";
import { analystPassword, databaseName, natsUser, ownerUrl } from "../../local-server/own-servers.ts";
import { choosePorts, type Listener, refuseTakenPorts, withSetting } from "../../local-server/ports.ts";
import { startServers } from "../../local-server/servers.ts";
import {
  type ListenerName,
  readUpSettings,
  serviceEnv,
  type UpSettings,
  type UpSource,
} from "../../local-server/settings.ts";
import { countWaiting, takeWaitingSpills } from "../../local-server/waiting-spills.ts";
import { programName } from "../../program-name.ts";
import { spillHome } from "../../recording/spill-home.ts";
import { type ChildService, startChildService } from "./child-service.ts";
import { startDemo } from "./demo.ts";
import { forgetOld, pauseUnwatched } from "./demo-care.ts";
import { receiverEnv, startReceivers } from "./demo-receivers/receivers.ts";
import { mendFullDisk, ReportedDisk } from "./full-disk.ts";
import type { UpOptions } from "./options.ts";
import { variablesToFind } from "./other-terminals.ts";
import { programPath } from "./programs.ts";
import { type LogFile, openLogFile, showLogs } from "./service-log.ts";
import { type WelcomeSource, welcome } from "./welcome.ts";

/** In the order of their starts; they stop in the opposite order, so that ingest records as long as it can. */
const services = ["ingest", "query", "gateway"] as const;

/** Ingest leaves Skaffold when that is idle; in the middle of a repeat it waits up to 30 s, because leaving there would hang it. */
const stopMs = { ingest: 45_000, query: 10_000, gateway: 5_000 };

/** Processes that a killed `up` left running notice that within this time, and exit. */
const leftoversMs = 20_000;

/** Starts Tapedeck on this machine, keeps it running, and stops it in order at the first SIGINT, SIGTERM or SIGHUP. */
export async function up(options: UpOptions): Promise<void> {
  const settings = readUpSettings(options, process.env);
  const { dataDir, storeDir, mode, access } = settings;
  const printLine = (line: string) => print(line);
  const stop = stopSignal(() => printLine("\nstopping …"));

  if (options.with !== undefined && mode !== "demo") throw new CommandError("--with is for the demo: add --demo.");
  await checkDataFolder(dataDir);
  await using stack = new AsyncDisposableStack();
  const lock = stack.use(await lockUp(dataDir, mode, storeDir));
  const listeners = await openPorts(settings, lock.wasLeft);
  const secrets = await loadSecrets(join(dataDir, "secrets"));
  const casting = mode === "demo" ? startDemo() : undefined;
  // Whatever fails before it is there: its processes must not outlive this one, nor keep it.
  if (casting !== undefined) stack.defer(() => casting.then((demo) => demo[Symbol.asyncDispose]()).catch(() => {}));
  // A terminal or a service manager may send its signal to the servers and services too, which then end by themselves.
  const printUnlessStopping = (line: string) => stop.aborted || printLine(line);
  const servers = await startServers({
    storeDir,
    secrets,
    printLine: printUnlessStopping,
    ...ownServers(settings, listeners),
  }).catch((error: unknown) => {
    throw withSetting(error, [listeners.nats, listeners.postgres]);
  });
  if (servers.nats) stack.use(servers.nats);
  if (servers.postgres) stack.use(servers.postgres);
  const demo = await casting;
  if (stop.aborted) return;

  const sources: readonly UpSource[] = demo?.sources ?? settings.sources;
  const logs = await openLogs(storeDir);
  const receivers = await startReceivers(options.with ?? [], stack, printUnlessStopping);
  const env = { ...serviceEnv(settings, listeners, sources, secrets), ...receiverEnv(receivers, settings) };
  const disk = new ReportedDisk();
  const running = await startServices(stack, { env, logs, disk, printLine: printUnlessStopping });
  // Before ingest leaves, so that it hears how the demo's processes end.
  if (demo) stack.use(demo);
  if (stop.aborted) return;

  const gateway = running.find(({ name }) => name === "gateway")?.addresses() ?? {};
  const http = gateway.http ?? "";
  const postgres = settings.postgresUrl === undefined ? addressOf(listeners.postgres) : undefined;
  const addresses = { ...gateway, ...ownAddresses(settings, listeners) };
  const { configFile } = settings;
  await lock.publish({ mode, storeDir, addresses, access, configFile, sources: tappedSources(sources, settings) });
  const home = spillHome(process.env);
  printLine(
    welcome({
      mode,
      access,
      addresses: { ...gateway, ...(postgres !== undefined && { postgres }) },
      storeDir,
      demoOffBy: settings.isDemoOff ? configFile : undefined,
      sources: sources.map(welcomeSource),
      analystUrl: postgres === undefined ? undefined : analystUrl(postgres, secrets),
      program: programName(),
      variables: variablesToFind(settings, process.env),
      waiting: await countWaiting(home, gateway.grpc),
    }),
  );

  const over = new AbortController();
  const { signal } = over;
  const demoDatabase = postgres === undefined ? {} : { databaseUrl: ownerUrl(postgres, secrets) };
  const target = ownIngest(settings, addressOf(listeners.ingestGrpc), secrets);
  const untilStop = { printLine: printUnlessStopping, signal };
  const printEnd = (error: unknown) =>
    printUnlessStopping(`a chore has ended until the next start: ${sentenceOf(error)}`);
  const chores = [
    showLogs(Object.values(logs), options.verbose ?? false, signal, printUnlessStopping),
    demo && pauseUnwatched({ demo, http, ...untilStop }),
    demo && servers.nats && forgetOld({ ...natsOf(servers.nats.current(), secrets), ...demoDatabase, signal }),
    servers.nats && mendFullDisk({ disk, nats: servers.nats, folder: storeDir, ...untilStop }),
    demo === undefined && settings.isOpen && takeWaitingSpills({ home, to: gateway.grpc ?? "", target, ...untilStop }),
  ].map((chore) => (chore || Promise.resolve()).catch(printEnd));
  stack.defer(async () => {
    over.abort();
    await Promise.all(chores);
  });
  if (!stop.aborted) await once(stop, "abort");
}

/** The servers that `up` itself runs, unless the user has some. */
function ownServers({ natsUrl, postgresUrl }: UpSettings, { nats, postgres }: UpSettings["listeners"]) {
  return {
    nats: natsUrl === undefined ? { port: nats.port } : undefined,
    postgres: postgresUrl === undefined ? { port: postgres.port, database: databaseName } : undefined,
  };
}

function analystUrl(postgres: string, secrets: Secrets): string {
  return `postgres://tapedeck_analyst:${analystPassword(secrets)}@${postgres}/${databaseName}`;
}

/** Addresses of what `up` itself runs, by name, beside those of the gateway. */
function ownAddresses({ natsUrl, postgresUrl }: UpSettings, listeners: UpSettings["listeners"]) {
  return {
    ingest: addressOf(listeners.ingestHealth),
    query: addressOf(listeners.queryHealth),
    ingestGrpc: addressOf(listeners.ingestGrpc),
    queryGrpc: addressOf(listeners.queryGrpc),
    ...(natsUrl === undefined && { nats: addressOf(listeners.nats) }),
    ...(postgresUrl === undefined && { postgres: addressOf(listeners.postgres) }),
  };
}

type StartServices = {
  readonly env: Readonly<Record<string, string>>;
  readonly logs: Readonly<Record<(typeof services)[number], LogFile>>;
  readonly disk: ReportedDisk;
  readonly printLine: (line: string) => void;
};

/** Starts all services at once. Those that start are disposed of with the stack, even if another one fails. */
async function startServices(
  stack: AsyncDisposableStack,
  { env, logs, disk, printLine }: StartServices,
): Promise<readonly ChildService[]> {
  const started = await Promise.allSettled(
    services.map((name) =>
      startChildService({
        name,
        main: programPath(name),
        env,
        logFile: logs[name].path,
        stopMs: stopMs[name],
        onDeath(how) {
          if (name === "ingest") disk.isFull = false;
          printLine(`${name} ${how}; it is restarted (see ${logs[name].path})`);
        },
        onReport({ isFull }) {
          disk.isFull = isFull;
        },
      }),
    ),
  );
  const running = started.flatMap((service) => (service.status === "fulfilled" ? [stack.use(service.value)] : []));
  for (const service of started) if (service.status === "rejected") throw service.reason;
  return running;
}

function tappedSources(sources: readonly UpSource[], { workspace }: UpSettings) {
  return sources.map(({ developer, project, upstream = "skaffold", address }) => ({
    source: sourceName({ workspace, developer: namePart(developer), project: namePart(project), upstream }),
    address,
  }));
}

function welcomeSource({ developer, project, upstream = "skaffold", address }: UpSource): WelcomeSource {
  const [name, id] = [`${developer}/${project}`, `${namePart(developer)}/${namePart(project)}`];
  return { upstream, name, id, address };
}

/** Ingest itself, past the gateway, which may require a token: recordings that wait here belong to this machine. */
function ownIngest({ workspace }: UpSettings, address: string, { servicesKey }: Secrets): GrpcTarget {
  const metadata = { "tapedeck-key": servicesKey, "tapedeck-workspace": workspace };
  const options = { "grpc.enable_http_proxy": 0 };
  return { address, isTls: false, metadata, options, name: address };
}

/** `timeout`, npm and others pass on what the terminal has sent to all already. */
const echoMs = 500;

/** A second signal ends this process at once; the servers are stopped on the way out, and the services notice. */
function stopSignal(onFirst: () => void): AbortSignal {
  const stop = new AbortController();
  let first = 0;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (!stop.signal.aborted) {
        first = performance.now();
        onFirst();
        stop.abort();
      } else if (performance.now() - first > echoMs) process.exit(130);
    });
  }
  return stop.signal;
}

/** `wasLeft`: what an `up` that was killed has left may still run. */
async function openPorts(settings: UpSettings, wasLeft: boolean): Promise<UpSettings["listeners"]> {
  const names = Object.keys(settings.listeners) as ListenerName[];
  const chosen = await choosePorts(names.map((name) => settings.listeners[name]));
  const listeners = Object.fromEntries(names.map((name, at) => [name, chosen[at]])) as UpSettings["listeners"];
  const { nats, postgres, ...ofServices } = listeners;
  // The servers report it themselves, and take over what a killed start left running.
  const servers = [
    ...(settings.natsUrl === undefined ? [nats] : []),
    ...(settings.postgresUrl === undefined ? [postgres] : []),
  ];
  await refuseTakenPorts(Object.values(ofServices), {
    timeoutMs: wasLeft ? leftoversMs : 0,
    others: wasLeft ? [] : servers,
  });
  return listeners;
}

async function openLogs(storeDir: string) {
  const folder = join(storeDir, "log");
  await mkdir(folder, { recursive: true });
  const open = async (name: string): Promise<LogFile> => openLogFile(join(folder, `${name}.log`));
  return { ingest: await open("ingest"), query: await open("query"), gateway: await open("gateway") };
}

function natsOf({ port }: { readonly port: number }, { natsPassword }: Secrets) {
  return { nats: { url: `nats://127.0.0.1:${port}`, user: natsUser, password: natsPassword } };
}

function addressOf({ host, port }: Listener): string {
  return `${host}:${port}`;
}
