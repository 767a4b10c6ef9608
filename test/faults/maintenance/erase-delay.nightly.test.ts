import { it } from "vitest";
import { startProcesses } from "../processes.ts";
import { besideOf, delaysLittle, untilLong } from "./beside.ts";
import { eraseWhole } from "./erase-call.ts";
import { seedSession } from "./seed.ts";

const messages = 100;
const sessions = Array.from({ length: 40 }, (_, at) => `01KE3M9Z6Q4W8T2V5X7Y9A1B${at + 10}`);

it("an erasure delays recording by 200 ms at most", { timeout: 1_800_000 }, async () => {
  await using on = await startProcesses([]);
  const toSeed = sessions.values();
  const seedNext = async () => {
    for (const session of toSeed) await seedSession(on, session, messages * 20, 20);
  };
  await Promise.all([1, 2, 3, 4].map(seedNext));
  const left = sessions.values();
  await delaysLittle(besideOf(on), {
    what: `erasures of ${messages} messages each`,
    round: () =>
      untilLong(async () => {
        const { value: session } = left.next();
        if (session === undefined) return "over";
        await eraseWhole(on, session);
        return "more";
      }),
  });
});
