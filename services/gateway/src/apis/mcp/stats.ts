import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { z } from "zod";
import { time } from "../tapedeck/parameter-schemas.ts";
import { readParameters, statsParameters } from "../tapedeck/parameters.ts";
import { statsKinds, statsNames } from "../tapedeck/schemas/stats.ts";
import { Answer, counted, textField, tokensField } from "./answer.ts";
import { assertRecorded, sourceField } from "./named-side.ts";
import { addRows } from "./rows.ts";
import { tool } from "./tool.ts";

const listOf = (field: z.ZodString, what: string) =>
  z.union([field, z.array(field).max(20)], `is neither ${what} nor a list of at most 20`).optional();
const list = listOf(textField, "a text");

export const stats = tool({
  name: "stats",
  title: "How long, how often",
  description: `Counts, failure rates and durations (p50, p90, p99). ${statsNames.map((name) => `${name}: ${statsKinds[name].summary.toLowerCase()}`).join("; ")}.`,
  input: z.strictObject({
    about: z.enum(statsNames),
    group: list.describe(
      "One row for each value: project, developer, source, artifact, hour, day, week, phase, reason, cause, errorCode, command, machine, label.<name>. `loop` and `time` give the rows that a number is made of.",
    ),
    source: listOf(sourceField, "a source such as alice/shop"),
    developer: list,
    project: list,
    artifact: list,
    label: list.describe("`branch=main`; all must match."),
    from: time.optional().describe("What began at this RFC 3339 time or later."),
    to: time.optional().describe("What began before this time."),
    zone: textField.optional().describe("The time zone of hours, days and weeks, such as `Europe/Berlin`."),
    tokens: tokensField,
  }),
  async answer({ about, tokens, ...given }, call) {
    const { apis, context } = call;
    if (given.artifact !== undefined && !statsKinds[about].hasLoops)
      throw invalidArgument(`statistics about ${about} have no \`artifact\``, "artifact");
    for (const source of [given.source ?? []].flat()) await assertRecorded(call, source);
    const parameters = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    const found = await apis.tapedeck.stats(
      context,
      about,
      readParameters(statsParameters(statsKinds[about]), parameters as never),
    );
    const answer = new Answer(tokens);
    const items = isByTime(given.group) ? found.items : found.items.toSorted((a, b) => sizeOf(b) - sizeOf(a));
    if (items.length === 0) answer.add("Nothing was recorded that this counts.");
    addRows(
      answer,
      items,
      (count) =>
        `${count} of ${counted(items.length, "row")}. Ask with more \`tokens\`, another \`group\`, or a narrower filter.`,
    );
    return answer.end({
      position: found.position,
      again: "statistics are always of now: `to` leaves out what began later.",
    });

    function sizeOf(row: object): number {
      return Number((row as Record<string, unknown>)[largest[about]] ?? 0);
    }
  },
});

/** The figure that orders the rows. */
const largest = {
  builds: "count",
  loops: "waitedMs",
  failures: "failures",
  green: "red",
  flakes: "flakes",
  commands: "runs",
} as const;

function isByTime(group: string | readonly string[] = []): boolean {
  return [group].flat().some((name) => ["hour", "day", "week", "time"].includes(name));
}
