import { ownValue } from "@tapedeck/shared/own-value";
import { apiAt } from "../../api/api.ts";
import { type FilterOptions, filterOf } from "../../api/filter.ts";
import { CommandError } from "../../command-error.ts";
import { durationText } from "../../display/durations.ts";
import { print, printError, printJson } from "../../display/output.ts";
import { spokenSource } from "../../display/source-name.ts";
import { table } from "../../display/table.ts";

export type SinkOptions = { readonly url?: string; readonly json?: boolean };
export type RewindOptions = SinkOptions & { readonly to: string };
export type ParkedOptions = SinkOptions & { readonly position?: string };
export type AddOptions = SinkOptions &
  FilterOptions & {
    readonly format: string;
    readonly mode: string;
    readonly cdevents?: boolean;
    readonly live?: boolean;
    readonly template?: object;
    readonly start: string;
    readonly header?: Readonly<Record<string, string>>;
    readonly headerEnv?: Readonly<Record<string, string>>;
    readonly secretEnv?: string;
  };

/** See Sink of the API. */
type Sink = {
  readonly name: string;
  readonly origin: "stored" | "settings";
  readonly target: string;
  readonly format: string;
  readonly state: string;
  readonly position: string | null;
  readonly lagEvents: number;
  readonly lagSeconds: number;
  readonly parked: number;
  readonly error: string | null;
};

type Result = {
  readonly outcome: "delivered" | "refused" | "away";
  readonly status: number | null;
  readonly error: string | null;
};
type TestResult = Result & { readonly warning: string | null };
type Parked = {
  readonly position: string;
  readonly event: string;
  readonly kind: string;
  readonly source: string;
  readonly tries: number;
  readonly error: string;
  readonly at: string;
};

/** `left`: how many were not tried, because the target is away. */
export type Retried = {
  readonly items: readonly (Result & { readonly position: string })[];
  readonly left?: number;
};

const noneParked = "No events are parked.";
const sinks = "/api/v1/sinks";
const pathOf = (name: string, call = "") => `${sinks}/${encodeURIComponent(name)}${call}`;

/** `isNarrowed`: a variable of the environment chose its sources. */
export async function addSink(name: string, target: string, options: AddOptions, isNarrowed: boolean): Promise<void> {
  const {
    url,
    json,
    format,
    mode,
    cdevents = false,
    live = false,
    template,
    start,
    header = {},
    headerEnv = {},
    secretEnv,
    ...filter
  } = options;
  const headers = {
    ...header,
    ...Object.fromEntries(Object.entries(headerEnv).map(([of, from]) => [of, fromVariable(from)])),
  };
  const secret = secretEnv === undefined ? {} : { secret: fromVariable(secretEnv) };
  const own = { ...secret, ...(cdevents && { cdevents }), ...(live && { live }), ...(template && { template }) };
  const body = { name, target, format, mode, start, headers, filter: filterOf(filter), ...own };
  const added = await apiAt(url).send<Sink & { readonly secret?: string }>("POST", sinks, body);
  // The variable is meant for what is typed today, and a sink stays.
  if (isNarrowed) {
    const chosen = filter.source?.join(", ");
    printError(`It gets only events of ${chosen}, as TAPEDECK_SOURCE is set: for all, unset it and add the sink anew.`);
  }
  if (json) {
    printJson(added);
    return;
  }
  print(`added ${added.name}, which delivers to ${added.target} ${placeText(start, added)}`);
  if (added.secret === undefined) return;
  print(added.secret);
  printError("This secret signs its requests. It is shown only once.");
}

export async function listSinks({ url, json }: SinkOptions): Promise<void> {
  const { items } = await apiAt(url).get<{ readonly items: readonly Sink[] }>(sinks);
  if (json) {
    printJson({ items });
    return;
  }
  if (items.length === 0) {
    print("There are no sinks.");
    return;
  }
  const columns = [
    { title: "SINK", isName: true },
    { title: "TARGET" },
    { title: "STATE" },
    { title: "BEHIND" },
    { title: "PARKED", align: "right" as const },
    { title: "ERROR", isExtra: true },
  ];
  print(table(columns, items.map(cellsOf)));
}

export async function changeSink(change: "pause" | "resume", name: string, { url, json }: SinkOptions): Promise<void> {
  const changed = await apiAt(url).send<Sink>("POST", pathOf(name, `/${change}`));
  if (json) printJson(changed);
  else print(`${change === "pause" ? "paused" : "resumed"} ${changed.name} after ${changed.position ?? "nothing"}`);
}

export async function rewindSink(name: string, { url, json, to }: RewindOptions): Promise<void> {
  const changed = await apiAt(url).send<Sink>("POST", pathOf(name, "/rewind"), { to });
  if (json) printJson(changed);
  else print(`${changed.name} goes on ${placeText(to, changed)}`);
}

function placeText(start: string, { position }: Sink): string {
  return start === "start" ? "from the start of the log" : `after ${position}`;
}

export async function setTarget(name: string, target: string, { url, json }: SinkOptions): Promise<void> {
  const changed = await apiAt(url).send<Sink>("POST", pathOf(name, "/target"), { target });
  if (json) printJson(changed);
  else print(`${changed.name} delivers to ${changed.target} after ${changed.position}`);
}

export async function removeSink(name: string, { url, json }: SinkOptions): Promise<void> {
  const removed = await apiAt(url).send<{ readonly name: string }>("DELETE", pathOf(name));
  if (json) printJson(removed);
  else print(`removed ${removed.name}`);
}

export async function testSink(name: string, { url, json }: SinkOptions): Promise<void> {
  const result = await apiAt(url).send<TestResult>("POST", pathOf(name, "/test"));
  if (json) printJson(result);
  else if (result.outcome === "delivered") print(`${name}: its target accepts (${result.status})`);
  if (!json && result.warning !== null) printError(`${name}: ${result.warning}.`);
  if (result.outcome !== "delivered") throw new CommandError(`${name}: ${failureText(result)}.`);
}

export async function listParked(name: string, { url, json }: SinkOptions): Promise<void> {
  const { items } = await apiAt(url).get<{ readonly items: readonly Parked[] }>(pathOf(name, "/parked"));
  if (json) {
    printJson({ items });
    return;
  }
  if (items.length === 0) {
    print(noneParked);
    return;
  }
  const columns = [
    { title: "POSITION", isName: true },
    { title: "SOURCE" },
    { title: "KIND" },
    { title: "PARKED" },
    { title: "TRIES", align: "right" as const },
    { title: "ERROR" },
  ];
  const cells = ({ position, source, kind, at, tries, error }: Parked) => [
    position,
    spokenSource(source),
    kind,
    new Date(at).toLocaleString("sv-SE"),
    String(tries),
    error,
  ];
  print(table(columns, items.map(cells)));
}

export async function retryParked(name: string, { url, json, position }: ParkedOptions): Promise<void> {
  const body = position === undefined ? {} : { position };
  const retried = await apiAt(url).send<Retried>("POST", pathOf(name, "/parked/retry"), body);
  if (json) printJson(retried);
  else print(retriedText(retried));
  const failed = (["away", "refused"] as const).map((outcome) => retried.items.find((one) => one.outcome === outcome));
  const errors = failed.flatMap((one) => (one === undefined ? [] : [`${failureText(one)} (at ${one.position})`]));
  if (errors.length > 0) throw new CommandError(`${name}: ${errors.join("; ")}.`);
}

/** "delivered 3 of 6, 1 refused, 1 had nothing to send, 1 waits" */
export function retriedText({ items, left = 0 }: Retried): string {
  const count = (of: Result["outcome"]) => items.filter(({ outcome }) => outcome === of).length;
  // A chat has no message about some events, such as a success before which it knows of no failure.
  const unsent = items.filter(({ outcome, status }) => outcome === "delivered" && status === null).length;
  const waiting = count("away") + left;
  const counts = [
    { count: count("refused"), what: "refused" },
    { count: unsent, what: "had nothing to send" },
    { count: waiting, what: waiting === 1 ? "waits" : "wait" },
  ];
  const others = counts.filter(({ count: some }) => some > 0).map(({ count: some, what }) => `${some} ${what}`);
  return [`delivered ${count("delivered") - unsent} of ${items.length + left}`, ...others].join(", ");
}

function failureText({ outcome, error }: Result): string {
  return `its target ${outcome === "away" ? "is away" : "refuses"}: ${error}`;
}

export async function dropParked(name: string, { url, json, position }: ParkedOptions): Promise<void> {
  const body = position === undefined ? {} : { position };
  const answer = await apiAt(url).send<{ readonly dropped: number }>("POST", pathOf(name, "/parked/drop"), body);
  if (json) printJson(answer);
  else print(answer.dropped === 0 ? noneParked : `dropped ${answer.dropped}`);
}

function cellsOf({ name, origin, target, state, lagEvents, lagSeconds, parked, error }: Sink): string[] {
  const behind = lagSeconds === 0 ? `${lagEvents}` : `${lagEvents}, ${durationText(lagSeconds * 1_000)}`;
  const place = origin === "settings" ? `${state} (settings)` : state;
  return [name, target, place, lagEvents === 0 ? "-" : behind, String(parked), error ?? ""];
}

/** @throws CommandError for a variable that is not set */
function fromVariable(variable: string): string {
  const value = ownValue(process.env, variable);
  if (value === undefined || value === "") throw new CommandError(`the environment variable ${variable} is not set.`);
  return value;
}
