import { connect, type NatsConnection } from "nats";
import { expect, it } from "vitest";
import { startTestNats } from "../testing/nats.ts";
import { until } from "../testing/until.ts";
import { ReportedConditions, reportCondition } from "./condition.ts";

/** A recorder whose condition is asked for every few milliseconds, a gateway that listens, and what was published. */
async function harness() {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startTestNats());
  const nats = stack.adopt(await connect({ servers: server.url }), (nc) => nc.close());
  const conditions = new ReportedConditions();
  conditions.listen(nats);
  const recorder = { problems: [] as string[], warnings: [] as string[], asked: 0, published: 0 };
  const publisher: Pick<NatsConnection, "publish"> = {
    publish: (...message) => {
      recorder.published++;
      nats.publish(...message);
    },
  };
  const now = () => {
    recorder.asked++;
    return recorder;
  };
  stack.use(reportCondition(publisher, "recorder", now, 2));
  const owned = stack.move();
  return { recorder, conditions, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

it("a recorder that is well publishes nothing", async () => {
  await using on = await harness();
  await until(() => on.recorder.asked > 20, { message: "many checks of its condition" });
  expect([on.recorder.published, on.conditions.now]).toEqual([0, { problems: [], warnings: [] }]);
});

it("a recorder with a problem repeats it until it is over, and says so once", async () => {
  await using on = await harness();
  const { recorder, conditions } = on;
  recorder.problems = ["the disk is full"];
  await until(() => recorder.published > 5, { message: "the problem to be repeated" });
  await until(() => conditions.now.problems[0] === "the disk is full", { message: "the problem to be heard" });
  recorder.problems = [];
  await until(() => conditions.now.problems.length === 0, { message: "its end to be heard" });
  const { asked, published } = recorder;
  await until(() => recorder.asked > asked + 20, { message: "many checks after it" });
  expect(recorder.published).toBe(published);
});
