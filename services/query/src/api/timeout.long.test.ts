import { connect } from "node:http2";
import { QueryService, ReadStateRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { silentConnection } from "@tapedeck/shared/testing/silent-connection";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { expect, it } from "vitest";
import { queryClient } from "../testing/client.ts";
import { scenario } from "../testing/scenario.ts";
import { reaches, servicesKey, stage } from "../testing/stage.ts";
import { ulid, vagrantSession, vagrantShop } from "../testing/vagrant-scenario.ts";

it("reports in time that a call takes too long, also to callers that wait for a database connection", async () => {
  await using stack = new AsyncDisposableStack();
  const on = stack.use(await stage());
  const query = stack.use(await on.startQuery({ timeoutMs: 1_000 }));
  const ask = stack.use(queryClient(query.address));
  await until(async () => (await ask.listSources()).position !== "", { message: "the tables" });
  const database = stack.adopt(new Client(on.databaseUrl), (client) => client.end());
  await database.connect();
  await database.query("begin; lock table tapedeck.sources in access exclusive mode");

  // Ten are at work at once, for a second each: without an end of its own the wait would be longer than for a database away.
  const outcomes = await Promise.allSettled(Array.from({ length: 100 }, () => ask.listSources()));
  const codes = outcomes.map((outcome) =>
    outcome.status === "rejected" && outcome.reason instanceof TapedeckError ? outcome.reason.code : outcome,
  );
  expect(new Set(codes)).toEqual(new Set(["limit_exceeded"]));

  await database.query("rollback");
  await until(() => ask.listSources(), { message: "answers in time" });
});

it("a reader of a state that stops reading keeps its snapshot no longer than its call may take", async () => {
  await using stack = new AsyncDisposableStack();
  const on = stack.use(await stage());
  const script = scenario(vagrantShop);
  const server = vagrantSession("01A", script);
  server.began();
  server.queued(ulid(1));
  const last = (await on.write(script.events)).at(-1) ?? 0;
  const query = stack.use(await on.startQuery({ timeoutMs: 2_000 }));
  await reaches(query, last);
  const database = stack.adopt(new Client(on.databaseUrl), (client) => client.end());
  await database.connect();
  // More than any buffer on the way takes.
  await database.query(
    `insert into tapedeck_internal.vagrant_job_versions (session, source, job, position, message)
     select '01A', $1, lpad(n::text, 26, '0'), -n, $2 from generate_series(1, 500) as n`,
    [vagrantShop, Buffer.alloc(100_000)],
  );
  // It holds its snapshot between its statements, too.
  const reader = async () => {
    const { rows } = await database.query(
      `select pid, xact_start::text from pg_stat_activity where application_name = 'tapedeck-query'
         and state = 'idle in transaction' and backend_xmin is not null and query like '%vagrant_job%'`,
    );
    return rows[0] as { readonly pid: number; readonly xact_start: string } | undefined;
  };
  const isOver = async ({ pid, xact_start }: { readonly pid: number; readonly xact_start: string }) => {
    const { rows } = await database.query("select from pg_stat_activity where pid = $1 and xact_start::text = $2", [
      pid,
      xact_start,
    ]);
    return rows.length === 0;
  };
  // A gRPC client reads ahead.
  const session = stack.adopt(connect(`http://${query.address}`), (one) => one.close());
  const headers = { "content-type": "application/grpc", te: "trailers", "tapedeck-key": servicesKey };
  const call = session.request({ ":method": "POST", ":path": QueryService.readState.path, ...headers });
  const fields = { workspace: "acme", source: vagrantShop, collection: "vagrant.jobs" };
  const request = ReadStateRequest.encode(ReadStateRequest.fromPartial(fields)).finish();
  call.end(Buffer.concat([Buffer.of(0, 0, 0, 0, request.length), request]));
  const status = new Promise((resolve) => call.once("trailers", (trailers) => resolve(trailers["grpc-status"])));
  const reading = await until(reader, { message: "the snapshot of the reader" });
  await until(() => isOver(reading), { message: "the snapshot to end" });
  call.resume();
  expect(await status).toBe("8");
});

it("closes a connection beyond the limit at once, and an idle one soon", async () => {
  await using on = await stage();
  const arrivalMs = 3_000;
  await using query = await on.startQuery({ connectionLimits: { connections: 1, arrivalMs } });
  const since = performance.now();
  using first = await silentConnection(query.address);
  using second = await silentConnection(query.address);
  await until(second.isOver, { message: "the second to be closed" });
  expect(first.isOver() && performance.now() - since < arrivalMs).toBe(false);
  await until(first.isOver, { message: "the first to be closed" });
});
