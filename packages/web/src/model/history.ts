import type { HistoryItem, HistoryKind, Outcome, SearchOptions } from "@tapedeck/client";
import { loopPath, sessionPath } from "./route.ts";

/** All that a visitor chooses of the history; it is in its URL. */
export type HistoryChoice = {
  readonly text: string;
  readonly kinds: readonly string[];
  readonly developers: readonly string[];
  readonly projects: readonly string[];
  readonly outcomes: readonly string[];
  readonly reasons: readonly string[];
  readonly artifacts: readonly string[];
  /** "name=value"; all of them must match. */
  readonly labels: readonly string[];
  /** Days, both inclusive, in the visitor's time zone; empty: open. */
  readonly from: string;
  readonly to: string;
};

export const historyKinds = ["loop", "command", "job", "pod", "session"] as const satisfies readonly HistoryKind[];
export const outcomes = ["failed", "succeeded", "canceled", "unknown"] as const satisfies readonly Outcome[];

const lists = {
  kind: "kinds",
  developer: "developers",
  project: "projects",
  outcome: "outcomes",
  reason: "reasons",
  artifact: "artifacts",
  label: "labels",
} as const;
const day = /^\d{4}-\d\d-\d\d$/;

export function historyChoiceOf(search: string): HistoryChoice {
  const query = new URLSearchParams(search);
  const all = (name: string) => [...new Set(query.getAll(name).filter((value) => value !== ""))];
  const dayOf = (name: string) => (day.test(query.get(name) ?? "") ? (query.get(name) ?? "") : "");
  return {
    text: query.get("q") ?? "",
    kinds: all("kind"),
    developers: all("developer"),
    projects: all("project"),
    outcomes: all("outcome"),
    reasons: all("reason"),
    artifacts: all("artifact"),
    labels: all("label").filter((label) => /^[^=]+=/.test(label)),
    from: dayOf("from"),
    to: dayOf("to"),
  };
}

export function historyPath({ text, from, to, ...choice }: Partial<HistoryChoice>): string {
  const query = new URLSearchParams();
  if (text) query.set("q", text);
  for (const [name, field] of Object.entries(lists)) for (const value of choice[field] ?? []) query.append(name, value);
  if (from) query.set("from", from);
  if (to) query.set("to", to);
  const written = String(query).replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%3D", "=");
  return written === "" ? "/loops" : `/loops?${written}`;
}

/** What the API is asked for. */
export function searchOptionsOf({ text, labels, from, to, ...choice }: HistoryChoice): SearchOptions {
  const { kinds, outcomes: chosen, ...names } = choice;
  return {
    ...names,
    kinds: kinds as HistoryKind[],
    outcomes: chosen as Outcome[],
    labels: Object.fromEntries(
      labels.map((label) => [label.split("=", 1)[0] ?? "", label.slice(label.indexOf("=") + 1)]),
    ),
    ...(text !== "" && { text }),
    ...(from !== "" && { from: startOf(from, 0) }),
    ...(to !== "" && { to: startOf(to, 1) }),
  };
}

/** The beginning of a day, or of one after it, here. */
function startOf(date: string, later: number): Date {
  const [year = 0, month = 1, dayOfMonth = 1] = date.split("-").map(Number);
  return new Date(year, month - 1, dayOfMonth + later);
}

/** Where an item is shown, at the line that was found. */
export function itemPath({ kind, session, runner, loop, hit, startPosition, endPosition }: HistoryItem): string {
  const line = hit?.place === "output" || hit?.place === "cause" ? hit.text.trim().slice(0, longestLine) : "";
  const query = new URLSearchParams();
  if (hit?.place === "output" && hit.step !== "" && hit.position !== null) query.set("step", hit.position);
  if (line !== "") query.set("line", line);
  const more = String(query);
  if (kind === "loop") return `${loopPath({ session, runner, loop })}${more === "" ? "" : `?${more}`}`;
  const path = sessionPath(session, endPosition ?? (kind === "session" ? undefined : startPosition));
  return more === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${more}`;
}

const longestLine = 200;

/** What an item is called beside its source. */
export function itemName({ kind, loop, subject, instance }: HistoryItem): string {
  if (kind === "loop") return `loop ${loop}`;
  if (kind === "session") return subject === "" ? "session" : subject;
  if (kind === "job") return `job …${instance.slice(-6)}`;
  return kind === "pod" ? `pod ${subject.slice(0, 8)}` : subject;
}

/** The items by the day on which they began, in their order. */
export function byDay(
  items: readonly HistoryItem[],
): readonly (readonly [day: string, items: readonly HistoryItem[]])[] {
  return [...Map.groupBy(items, ({ startedAt }) => (startedAt === null ? "" : dayOf(new Date(startedAt))))];
}

function dayOf(date: Date): string {
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

const dayForm = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" });

export function dayText(date: string, now: number): string {
  if (date === "") return "Unknown time";
  if (date === dayOf(new Date(now))) return "Today";
  if (date === dayOf(new Date(now - 86_400_000))) return "Yesterday";
  return dayForm.format(startOf(date, 0));
}
