import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { parseWhen } from "@tapedeck/shared/filter/time";
import type { ListParameters } from "./list-request.ts";
import type { ParametersOf } from "./parameters.ts";

export function between({
  from,
  to,
}: Pick<ParametersOf<"sessions">, "from" | "to">): Pick<ListParameters, "from" | "to"> {
  return { ...(from !== undefined && { from: timeOf(from) }), ...(to !== undefined && { to: timeOf(to) }) };
}

function timeOf(text: string): Timestamp {
  const when = parseWhen(text);
  if (when?.type !== "time") throw new Error(`"${text}" passed the check of its parameter`);
  const { seconds, nanos } = timestampFromDate(when.time);
  return { seconds, nanos };
}

export function labelsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}
