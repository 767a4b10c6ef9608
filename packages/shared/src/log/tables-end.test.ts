import { connect } from "nats";
import { expect, it } from "vitest";
import { startTestNats } from "../testing/nats.ts";
import { until } from "../testing/until.ts";
import { endSubjects } from "./subjects.ts";
import { reportTablesEnds, type TablesEnd } from "./tables-end.ts";

it("the ends of tables are read when one may have changed, and published once", async () => {
  await using server = await startTestNats();
  const nats = await connect({ servers: server.url });
  const heard: TablesEnd[] = [];
  nats.subscribe(endSubjects("acme").tables, { callback: (_, message) => void heard.push(message.json()) });
  const quiet = { seq: 1, reads: 0 };
  const busyReads = { count: 0 };
  using report = reportTablesEnds(
    nats,
    () => {
      quiet.reads++;
      return new Map([["acme", { epoch: "a", seq: quiet.seq }]]);
    },
    { gatherMs: 2 },
  );
  using busy = reportTablesEnds(
    nats,
    () => {
      busyReads.count++;
      return new Map();
    },
    { gatherMs: 2 },
  );
  const whileOthersRead = async (times: number) => {
    const end = busyReads.count + times;
    const isRead = () => {
      busy.changed();
      return busyReads.count >= end;
    };
    await until(isRead, { message: "the other's ends to be read" });
  };
  await whileOthersRead(10);
  expect(quiet.reads).toBe(1);
  quiet.seq = 2;
  for (let changes = 0; changes < 3; changes++) report.changed();
  await until(() => heard.length === 2, { message: "the change to be published" });
  await whileOthersRead(10);
  expect([quiet.reads, heard]).toEqual([
    2,
    [
      { epoch: "a", seq: 1 },
      { epoch: "a", seq: 2 },
    ],
  ]);
  await nats.close();
});
