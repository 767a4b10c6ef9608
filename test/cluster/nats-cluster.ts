import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager, type StreamInfo } from "@nats-io/jetstream";
import { type ServerProcess, spawnServer } from "@tapedeck/infra/local/server-process";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { connect, type NatsConnection } from "nats";
import { inject } from "vitest";
import { type FaultyNetwork, faultyNetwork } from "../faults/faulty-network.ts";
import { usersFile } from "../operations/nats-users.ts";
import type { RunLogs } from "./run-logs.ts";
import type { Secured } from "./secured.ts";

type NatsClusterOptions = {
  /** Without it there are neither users nor TLS. */
  readonly secured?: Secured | undefined;
  /** Where the nodes' logs go. Default: beside their data. */
  readonly logs?: RunLogs;
};

/** The streams that all nodes replicate. */
const streams = [streamOf("default"), "TAPEDECK_ENDS", "KV_TAPEDECK_OWNERS"];

type NatsNode = {
  readonly name: string;
  readonly port: number;
  readonly routePort: number;
  readonly monitorPort: number;
  readonly folder: string;
  /** The network in front of this node alone, which is advertised to clients. */
  readonly forClients: FaultyNetwork;
};

/** A connection from one node to another, dialled by the former. */
type Route = { readonly from: string; readonly to: string; readonly network: FaultyNetwork };

/**
 * Three nats-servers that replicate a log, on one machine by ports. Each dials each other one through a separate
 * network, which the test may interrupt; another such network is in front of each for its clients.
 */
export class NatsCluster implements AsyncDisposable {
  readonly #nodes: readonly NatsNode[];
  readonly #routes: readonly Route[];
  readonly #secured: Secured | undefined;
  readonly #logs: RunLogs | undefined;
  readonly #running = new Map<string, ServerProcess>();

  private constructor(nodes: readonly NatsNode[], routes: readonly Route[], options: NatsClusterOptions) {
    this.#nodes = nodes;
    this.#routes = routes;
    this.#secured = options.secured;
    this.#logs = options.logs;
  }

  /** Resolves when the nodes have elected a leader of JetStream. */
  static async start(folder: string, options: NatsClusterOptions = {}): Promise<NatsCluster> {
    const nodes = await Promise.all(["nats-1", "nats-2", "nats-3"].map((name) => makeNode(name, join(folder, name))));
    const pairs = nodes.flatMap((from) => nodes.filter((to) => to !== from).map((to) => ({ from, to })));
    const route = async ({ from, to }: (typeof pairs)[number]) => {
      return { from: from.name, to: to.name, network: await faultyNetwork(to.routePort) };
    };
    const cluster = new NatsCluster(nodes, await Promise.all(pairs.map(route)), options);
    await Promise.all(nodes.map((node) => cluster.#launch(node)));
    await cluster.#answer(
      async (nats) => (await jetstreamManager(nats)).getAccountInfo(),
      "JetStream to have a leader",
    );
    return cluster;
  }

  get names(): readonly string[] {
    return this.#nodes.map(({ name }) => name);
  }

  /** The address of one node alone. */
  urlOf(name: string): string {
    return `127.0.0.1:${this.#node(name).port}`;
  }

  /** The value for `nats.url`. */
  get url(): string {
    const scheme = this.#secured === undefined ? "nats" : "tls";
    return this.#nodes.map(({ forClients }) => `${scheme}://127.0.0.1:${forClients.port}`).join(",");
  }

  /** The node that leads the log now. */
  async leader(): Promise<string> {
    const ask = async (nats: NatsConnection) => (await infoOf(nats, streamOf("default"))).cluster?.leader;
    return this.#answer(ask, "the log to have a leader");
  }

  /** A node that does not lead the log now. */
  async follower(): Promise<string> {
    const leader = await this.leader();
    return this.names.find((name) => name !== leader) ?? "";
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(name: string): Promise<void> {
    await this.#running.get(name)?.kill("SIGKILL");
    this.#running.delete(name);
  }

  /** How many of these streams each node leads. */
  async leads(of: readonly string[]): Promise<Readonly<Record<string, number>>> {
    const ask = async (nats: NatsConnection) => {
      const leaders = await Promise.all(of.map(async (stream) => (await infoOf(nats, stream)).cluster?.leader ?? ""));
      return Object.fromEntries(this.names.map((name) => [name, leaders.filter((leader) => leader === name).length]));
    };
    return this.#answer(ask, "the streams' leaders");
  }

  /** A clean stop, after which the node hands over its leadership; resolves when it is gone. */
  async stop(name: string): Promise<void> {
    await this.#running.get(name)?.stop();
    this.#running.delete(name);
  }

  async restart(name: string): Promise<void> {
    await this.#launch(this.#node(name));
  }

  /** Drops all packets between this node and the others; with `clients` also those of its clients. */
  cutOff(name: string, { clients }: { readonly clients: boolean }): void {
    for (const network of this.#networksOf(name, clients)) network.weather = "hole";
  }

  reconnect(name: string): void {
    for (const network of this.#networksOf(name, true)) network.weather = "fine";
  }

  /** How many nodes keep each stream. */
  async replicas(): Promise<Readonly<Record<string, number>>> {
    const ask = async (nats: NatsConnection) => {
      const infos = await Promise.all(streams.map((stream) => infoOf(nats, stream)));
      return Object.fromEntries(infos.map(({ config }) => [config.name, config.num_replicas]));
    };
    return this.#answer(ask, "the streams' replicas");
  }

  /** Resolves when every node has all of its replicas of the streams, as reported by all nodes. */
  async whole(kept: readonly string[] = streams): Promise<void> {
    for (const node of this.#nodes) {
      for (const stream of kept) {
        const isWhole = async (nats: NatsConnection) => {
          const { config, cluster } = await infoOf(nats, stream);
          const followers = cluster?.replicas ?? [];
          const isComplete = followers.length === config.num_replicas - 1;
          return isComplete && followers.every(({ current, offline }) => current && !offline);
        };
        await this.#answer(isWhole, `${stream} to be whole, by ${node.name}`, [node]);
      }
    }
  }

  /** Resolves when this node, which has no users, answers for the log without its leader: some seconds after it has it. */
  async answersAlone(name: string): Promise<void> {
    const { monitorPort } = this.#node(name);
    const parameters = `subs=1&acc=$G&limit=1000&test=$JS.API.DIRECT.GET.${streamOf("default")}`;
    const answers = async () => (await fetch(`http://127.0.0.1:${monitorPort}/subsz?${parameters}`)).text();
    await until(async () => (await answers()).includes(`"$JS.API.DIRECT.GET.${streamOf("default")}"`), {
      message: `${name} to answer for the log`,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running.values()].map((server) => server.stop()));
    const networks = [...this.#routes, ...this.#nodes.map(({ forClients }) => ({ network: forClients }))];
    await Promise.all(networks.map(({ network }) => network[Symbol.asyncDispose]()));
  }

  #node(name: string): NatsNode {
    const node = this.#nodes.find((one) => one.name === name);
    if (node === undefined) throw new Error(`there is no ${name}`);
    return node;
  }

  #networksOf(name: string, clients: boolean): FaultyNetwork[] {
    const routes = this.#routes.filter(({ from, to }) => from === name || to === name).map(({ network }) => network);
    return clients ? [...routes, this.#node(name).forClients] : routes;
  }

  async #launch(node: NatsNode): Promise<void> {
    const file = join(node.folder, "nats-server.conf");
    await writeFile(file, this.#configOf(node));
    if (this.#secured !== undefined) await writeFile(join(node.folder, usersFile), this.#secured.natsUsers);
    const server = await spawnServer({
      command: inject("natsServer"),
      args: ["-c", file],
      mark: file,
      env: this.#secured?.natsEnv ?? {},
      logFile: this.#logs?.fileOf(node.name) ?? join(node.folder, "nats-server.log"),
      stopSignal: "SIGTERM",
    });
    this.#running.set(node.name, server);
    await until(async () => (await this.#connect(node)).close().then(() => true), {
      message: `${node.name} to accept connections`,
    });
  }

  /** Connects as the test's own user. */
  #connect(node: NatsNode): Promise<NatsConnection> {
    const by = this.#secured?.testLogin;
    const options = { servers: direct(node), reconnect: false, timeout: 2_000 };
    if (by === undefined) return connect(options);
    return connect({ ...options, user: by.user, pass: by.password, tls: { caFile: by.ca } });
  }

  #configOf({ name, port, routePort, monitorPort, folder, forClients }: NatsNode): string {
    const routes = this.#routes.filter(({ from }) => from === name);
    const [ofClients, ofRoutes] = this.#secured === undefined ? ["", ""] : tlsOf(this.#secured);
    return `server_name: ${name}
server_tags: [${name}, test]
listen: "127.0.0.1:${port}"
http: "127.0.0.1:${monitorPort}"
client_advertise: "127.0.0.1:${forClients.port}"
max_payload: 8MB
debug: ${this.#logs !== undefined}
jetstream { store_dir: ${JSON.stringify(join(folder, "store"))}, sync_interval: always }
cluster {
  name: tapedeck
  listen: "127.0.0.1:${routePort}"
  # The others know their own way here; what they hear from third nodes leads nowhere.
  advertise: "127.0.0.1:1"
  routes: [${routes.map(({ network }) => `"nats://127.0.0.1:${network.port}"`).join(", ")}]
  ${ofRoutes}
}
${ofClients}
`;
  }

  /** Queries one node after the other until one answers. */
  #answer<T>(ask: (nats: NatsConnection) => Promise<T>, message: string, nodes = this.#nodes) {
    let turn = 0;
    const once = async () => {
      const node = nodes[turn++ % nodes.length] as NatsNode;
      const nats = await this.#connect(node);
      try {
        return await ask(nats);
      } finally {
        await nats.close();
      }
    };
    return until(once, { message, deadlineMs: 300_000 });
  }
}

/** For clients, and between the nodes, which also check each other's certificate. */
function tlsOf({ caFile, certificate: { certFile, keyFile } }: Secured): readonly [string, string] {
  const shown = `cert_file: ${JSON.stringify(certFile)}, key_file: ${JSON.stringify(keyFile)}`;
  return [
    `tls { ${shown} }\ninclude ${usersFile}`,
    `tls { ${shown}, ca_file: ${JSON.stringify(caFile)}, verify: true, timeout: 10 }`,
  ];
}

async function makeNode(name: string, folder: string): Promise<NatsNode> {
  await mkdir(join(folder, "store"), { recursive: true });
  const [port, routePort, monitorPort] = [await ownPort(), await ownPort(), await ownPort()];
  return { name, port, routePort, monitorPort, folder, forClients: await faultyNetwork(port) };
}

const direct = ({ port }: NatsNode) => `127.0.0.1:${port}`;

async function infoOf(nats: NatsConnection, stream: string): Promise<StreamInfo> {
  return (await jetstreamManager(nats, { checkAPI: false, timeout: 2_000 })).streams.info(stream);
}
