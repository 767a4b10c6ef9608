import { sequenceOf } from "@tapedeck/shared/log/offset";
import { until } from "@tapedeck/shared/testing/until";
import type { Stack } from "./stack.ts";

/** Query's tables reflect all that is in the log. */
export async function tablesCaughtUp({ log, services }: Stack): Promise<void> {
  const lastSeq = sequenceOf((await log.reader.bounds()).lastOffset);
  const position = async () => {
    const text = await (await fetch(`http://${services.query?.addresses.health}/metrics`)).text();
    return Number(/^tapedeck_query_position(?:{[^}]*})? (\d+)/m.exec(text)?.[1] ?? 0);
  };
  await until(async () => (await position()) >= lastSeq, {
    message: `the tables to reach ${lastSeq}`,
    deadlineMs: 900_000,
  });
}
