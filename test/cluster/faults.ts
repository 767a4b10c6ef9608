import type { Cluster } from "./cluster.ts";

/** A fault in a cluster and its repair. The test checks the cluster in between and afterwards. */
export type Fault = {
  readonly name: string;
  /** Each step is followed by a check: everything continues, or the step has failed. */
  readonly steps: readonly ((cluster: Cluster) => Promise<void>)[];
  /** What has no goal during it. */
  readonly excused?: Excused;
};

export type Excused = "events";

const names = ["ingest", "query", "gateway"] as const;

/** A fault that remembers its node for the repair. */
function onNode(
  name: string,
  chosen: (cluster: Cluster) => Promise<string>,
  strike: (cluster: Cluster, node: string) => void | Promise<void>,
  heal: (cluster: Cluster, node: string) => void | Promise<void>,
): Fault {
  let node = "";
  return {
    name,
    steps: [
      async (cluster) => {
        node = await chosen(cluster);
        await strike(cluster, node);
      },
      async (cluster) => heal(cluster, node),
    ],
  };
}

const leader = ({ nats }: Cluster) => nats.leader();
const follower = ({ nats }: Cluster) => nats.follower();

/** Kills one process after the other and restarts each once the others have continued without it. */
function killedInTurn(name: (typeof names)[number], count: number): Fault {
  const steps = Array.from({ length: count }, (_, index) => [
    async ({ services }: Cluster) => services[name][index]?.kill(),
    async ({ services }: Cluster) => services[name][index]?.start(),
  ]);
  return { name: `each ${name} killed in turn`, steps: steps.flat() };
}

export const faults: readonly Fault[] = [
  { name: "nothing", steps: [async () => {}] },
  onNode(
    "NATS: the log's leader killed",
    leader,
    ({ nats }, node) => nats.kill(node),
    ({ nats }, node) => nats.restart(node),
  ),
  onNode(
    "NATS: another node killed",
    follower,
    ({ nats }, node) => nats.kill(node),
    ({ nats }, node) => nats.restart(node),
  ),
  onNode(
    "NATS: the log's leader cut off from the others, not from its clients",
    leader,
    ({ nats }, node) => nats.cutOff(node, { clients: false }),
    ({ nats }, node) => nats.reconnect(node),
  ),
  onNode(
    "NATS: another node cut off from the others, not from its clients",
    follower,
    ({ nats }, node) => nats.cutOff(node, { clients: false }),
    ({ nats }, node) => nats.reconnect(node),
  ),
  {
    // Gateways notice only after some seconds that a connection is dead, and may dial the same server again.
    excused: "events",
    ...onNode(
      "NATS: the log's leader unreachable for everybody",
      leader,
      ({ nats }, node) => nats.cutOff(node, { clients: true }),
      ({ nats }, node) => nats.reconnect(node),
    ),
  },
  {
    name: "Postgres: the primary killed, the replica promoted",
    steps: [({ postgres }) => postgres.failOver(), ({ postgres }) => postgres.startReplica()],
  },
  killedInTurn("ingest", 2),
  killedInTurn("query", 2),
  killedInTurn("gateway", 3),
  {
    name: "rolling restart of everything",
    steps: [
      async ({ nats }) => {
        for (const node of nats.names) {
          await nats.stop(node);
          await nats.restart(node);
          await nats.whole();
        }
      },
      ({ postgres }) => postgres.restart(),
      ...names.map((name) => (cluster: Cluster) => cluster.restart(name)),
    ],
  },
];

/** Readers of stored data are upgraded first and downgraded last. */
const up: Fault["steps"] = [
  (cluster) => cluster.upgrade("query"),
  (cluster) => cluster.upgrade("gateway"),
  (cluster) => cluster.upgrade("ingest"),
];

export const upgrades: readonly Fault[] = [
  { name: "upgrade to a later version", steps: up },
  {
    name: "back to this version",
    steps: [
      (cluster) => cluster.downgrade("ingest"),
      (cluster) => cluster.downgrade("gateway"),
      (cluster) => cluster.downgrade("query"),
    ],
  },
  { name: "upgrade again", steps: up },
];
