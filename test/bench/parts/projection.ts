import { Client } from "pg";
import type { Bench } from "../frame/bench.ts";
import { LoopHolds } from "../frame/loop-holds.ts";
import { perSecond, sampled } from "../frame/sample.ts";
import { seed } from "../frame/seed.ts";
import { type Stack, startStack } from "../frame/stack.ts";
import { startWorker, type Worker } from "../frame/worker.ts";
import type * as projecting from "../workers/projection.ts";
import type * as tableCopy from "../workers/table-copy.ts";

/** The size of query's transactions. */
const batch = 1_000;

/** Projects the log into tables: from nothing, and beside existing tables. */
export async function projection(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const stack = cleanup.use(await startStack(bench, { services: [] }));
  const { events } = await seed(bench, stack.log, bench.part, bench.options.size);
  const projector = cleanup.use(
    await startWorker<typeof projecting>(new URL("../workers/projection.ts", import.meta.url)),
  );
  const copier = cleanup.use(await startWorker<typeof tableCopy>(new URL("../workers/table-copy.ts", import.meta.url)));
  const until = await projector.call("open", stack.nats.url);
  const read = await projector.call("readOnly");
  if (read !== events) throw new Error(`the log has ${read} messages, and ${events} were written`);
  const log = { events, until };
  // Query's, but for its service.
  const loopHolds = async () => ({ query: await projector.call("loopHold"), ...(await stack.loopHolds()) });
  await intoTables(bench, stack, projector, copier, { ...log, holds: new LoopHolds({ loopHolds }) });
  await anew(bench, stack, projector, { ...log, holds: new LoopHolds({ loopHolds }) });
}

type Projector = Worker<typeof projecting>;
/** How many events, and the last sequence. */
type Seeded = { readonly events: number; readonly until: number; readonly holds: LoopHolds };

async function intoTables(
  bench: Bench,
  stack: Stack,
  projector: Projector,
  copier: Worker<typeof tableCopy>,
  { events, until, holds }: Seeded,
): Promise<void> {
  let rows = 0;
  let copyTo = "";
  await bench.compare({
    figures: [
      {
        name: "projection, all tables",
        unit: "events/s",
        of: perSecond,
        calibration: "unnest of the same rows into the same tables, in as many transactions",
        targets: [
          { of: "ratio", atLeast: 0.5 },
          { of: "value", atLeast: 30_000 },
        ],
      },
    ],
    async run() {
      const database = await newDatabase(stack, "projected");
      await projector.call("prepare", database);
      const processes = {
        projector: projector.pid,
        postgres: stack.processes.postgres ?? 0,
        nats: stack.processes.nats ?? 0,
      };
      const sample = await holds.during(() =>
        sampled(processes, async () => {
          await projector.call("project", database, until);
          return { count: events };
        }),
      );
      if (rows === 0) {
        copyTo = await newDatabase(stack, "copied", "projected");
        rows = await copier.call("load", database, copyTo);
      }
      return sample;
    },
    async calibrate() {
      await copier.call("empty");
      return sampled({ copier: copier.pid, postgres: stack.processes.postgres ?? 0 }, async () => {
        const written = await copier.call("write", Math.ceil(events / batch));
        if (written !== rows) throw new Error(`${written} of ${rows} rows were written`);
        return { count: events };
      });
    },
    deadlineMs: 900_000,
  });
  holds.report(bench, "projection");
}

async function anew(bench: Bench, stack: Stack, projector: Projector, { events, until, holds }: Seeded): Promise<void> {
  const database = await newDatabase(stack, "rebuilt");
  await projector.call("prepare", database);
  await projector.call("project", database, until);
  const processes = {
    projector: projector.pid,
    postgres: stack.processes.postgres ?? 0,
    nats: stack.processes.nats ?? 0,
  };
  await bench.compare({
    figures: [
      {
        name: "rebuild of all tables",
        unit: "s per million",
        of: ({ count, wallMs }) => (wallMs / count) * 1_000,
        calibration: "reading the log and doing nothing",
        targets: [
          { of: "ratio", atMost: 2 },
          { of: "value", atMost: 35 },
        ],
      },
    ],
    run: () =>
      holds.during(() =>
        sampled(processes, async () => {
          await projector.call("rebuildAll", database);
          return { count: events };
        }),
      ),
    calibrate: () => sampled(processes, async () => ({ count: await projector.call("readOnly") })),
    deadlineMs: 900_000,
  });
  holds.report(bench, "rebuild");
}

/** Makes a database of that name, empty or as a copy; drops an existing one. */
async function newDatabase({ database }: Stack, name: string, template?: string): Promise<string> {
  const url = new URL(database);
  // Other stacks may be on the same server.
  const own = (of: string) => `${url.pathname.slice(1)}_${of}`;
  const admin = new Client(database);
  await admin.connect();
  await admin.query(`drop database if exists ${own(name)} with (force)`);
  await admin.query(`create database ${own(name)}${template === undefined ? "" : ` template ${own(template)}`}`);
  await admin.end();
  url.pathname = `/${own(name)}`;
  return url.href;
}
