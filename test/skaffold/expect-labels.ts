import { Client } from "pg";
import { expect } from "vitest";
import { type LabelledLoop, type LabelledRecording, labelledLoops } from "./labelled-loops.ts";
import { labelledWaits } from "./labelled-waits.ts";

/** Compares SQL results about a source with a person's reading of its recording. Its session must be over. */
export async function expectLabels(database: string, recording: string, source: string): Promise<void> {
  const labelled = labelledLoops[recording];
  if (labelled === undefined) throw new Error(`${recording} has no labels`);
  const client = new Client(database);
  await client.connect();
  try {
    const ask = async (sql: string) => (await client.query<object>(sql, [source])).rows;
    expect(await ask(loops)).toEqual(labelled.loops.map(loopRow));
    expect(await ask(red)).toEqual(
      labelled.red.map(({ green = null, redMs = null, failed }) => ({ failed, green, redMs })),
    );
    expect(await ask(failures)).toEqual(failureRows(labelled));
    expect((await ask(unexplained)).map((row) => (row as { readonly cause: string }).cause)).toEqual(
      labelled.unexplained ?? [],
    );
    const { artifacts = {} } = labelled;
    expect(await ask(slowest)).toEqual(slowestRows(artifacts));
    expect(await ask(flaky)).toEqual(flakyRows(artifacts));
    const waits = (labelledWaits[recording] ?? []).map(([, read]) => read);
    expect((await ask(waited)).map((row) => waitsOf(row as WaitedRow))).toEqual(waits);
  } finally {
    await client.end();
  }
}

const loops = `select outcome, duration_ms::int as "durationMs", sync_ms::int as sync, build_ms::int as build,
  test_ms::int as test, render_ms::int as render, deploy_ms::int as deploy, check_ms::int as check,
  other_ms::int as other, failed_phase as phase, split_part(failed_subject, ':', 1) as subject,
  error_code as code, overtaken
  from tapedeck.loop_times where source = $1 order by runner, loop`;

function loopRow({ outcome, waited, cause = ["", "", ""], overtaken }: LabelledLoop) {
  const phases = ["sync", "build", "test", "render", "deploy", "check", "other"] as const;
  const times: Partial<Record<(typeof phases)[number], number>> = waited ?? {};
  const sum = Object.values(times).reduce((all, ms) => all + ms, 0);
  const [phase, subject, code] = cause;
  return {
    outcome,
    durationMs: waited === undefined ? null : sum,
    ...Object.fromEntries(phases.map((name) => [name, waited === undefined ? null : (times[name] ?? 0)])),
    phase,
    subject,
    code,
    overtaken: overtaken ?? false,
  };
}

const waited = "select waits from tapedeck.loop_times where source = $1 order by runner, loop";

type WaitedRow = { readonly waits: readonly Wait[] };
type Wait = Readonly<Record<"phase" | "subject", string>> & Readonly<Record<"from_ms" | "to_ms", number>>;

/** Gives them in the form of the labels. */
function waitsOf({ waits }: WaitedRow): string {
  const texts = waits.map(({ phase, subject, from_ms, to_ms }, index) => {
    // An image is named with its tag.
    const [name = ""] = subject.split(":");
    expect(from_ms).toBe(index === 0 ? 0 : waits[index - 1]?.to_ms);
    return [phase, ...(name === "" ? [] : [name]), to_ms].join(" ");
  });
  return texts.join(", ");
}

const red = `select (select loop from tapedeck.loop_times where id = loop_id) as failed,
  (select loop from tapedeck.loop_times where id = green_loop_id) as green, red_ms::int as "redMs"
  from tapedeck.time_to_green where source = $1 order by start_position`;

const failures = `select phase, split_part(subject, ':', 1) as subject, error_code as code
  from tapedeck.failures where source = $1 order by position`;

const unexplained = `select cause from tapedeck.failures where source = $1 and reason in ('other', '')
  order by position`;

/** A failed loop has one cause; consequential failures are none. */
export function failureRows({ loops, failedAlone = [] }: LabelledRecording) {
  const causes = [
    ...loops.flatMap(({ outcome, cause }) => (outcome === "failed" && cause ? [cause] : [])),
    ...failedAlone,
  ];
  return causes.map(([phase, subject, code]) => ({ phase, subject, code }));
}

/** All builds in the source's project: one source's builds, of one day. */
const slowest = `select artifact, builds::int, built_ms::int as "builtMs", p50_ms as p50, p90_ms as p90
  from tapedeck.slowest_artifacts where project = split_part($1, '/', 3) order by artifact`;

function slowestRows(artifacts: Artifacts) {
  return sorted(artifacts).map(([artifact, { builtMs, percentiles }]) => ({
    artifact,
    builds: builtMs.length,
    builtMs: builtMs.reduce((all, ms) => all + ms, 0),
    p50: percentiles?.p50 ?? expect.closeTo(percentile(0.5, builtMs), 6),
    p90: percentiles?.p90 ?? expect.closeTo(percentile(0.9, builtMs), 6),
  }));
}

/** Between the two nearest in their order, as far as the part lies between them. */
function percentile(part: number, values: readonly number[]): number {
  const ordered = values.toSorted((a, b) => a - b);
  const place = part * (ordered.length - 1);
  const [below = 0, above = below] = ordered.slice(Math.floor(place));
  return below + (above - below) * (place - Math.floor(place));
}

const flaky = `select artifact, builds::int, failed::int, flakes::int
  from tapedeck.flaky_artifacts where project = split_part($1, '/', 3) order by artifact`;

function flakyRows(artifacts: Artifacts) {
  return sorted(artifacts).flatMap(([artifact, { builtMs, failed = 0, flakes = 0 }]) =>
    flakes === 0 ? [] : [{ artifact, builds: builtMs.length, failed, flakes }],
  );
}

type Artifacts = NonNullable<LabelledRecording["artifacts"]>;

function sorted(artifacts: Artifacts) {
  return Object.entries(artifacts).toSorted(([a], [b]) => (a < b ? -1 : 1));
}
