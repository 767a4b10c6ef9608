import type { HistoryItem } from "@tapedeck/client";
import { clockText, durationText, plainText, plural } from "@tapedeck/client/lanes/format";
import { useHistory } from "../../data/read-history-page.ts";
import { useTitle } from "../../data/tab.ts";
import { tick } from "../../data/tapedeck.ts";
import { byDay, dayText, historyPath, itemName, itemPath } from "../../model/history.ts";
import { sourcePath } from "../../model/route.ts";
import { type DisplayedOutcome, ErrorNotice, Loading, Sign } from "../../parts/small.tsx";
import "../../look/history.css";

const pageSize = 500;

/** The sessions of a source by day, each with its loops or commands. */
export function SourceDaysView({ source }: { readonly source: string }) {
  const { list, error, isReading, more } = useHistory({ sources: [source] }, pageSize);
  useTitle(`${source}: sessions`);
  if (error !== undefined) return <ErrorNotice text={error} />;
  if (list === undefined) return <Loading what="the sessions" />;
  const [developer = "", project = ""] = source.split("/");
  const sessions = list.items.filter(({ kind }) => kind === "session");
  const units = Map.groupBy(
    list.items.filter(({ kind }) => kind !== "session"),
    ({ session }) => session,
  );
  return (
    <div class="history source-days">
      <header class="title">
        <h1>{source}</h1>
        <span class="actions">
          <a href={sourcePath(source)}>Now</a>
          <a href={historyPath({ developers: [developer], projects: [project] })}>All loops</a>
          <a href={`/trends?developer=${encodeURIComponent(developer)}&project=${encodeURIComponent(project)}`}>
            Trends
          </a>
        </span>
      </header>
      {sessions.length === 0 && <p class="quiet-text">No session of {source} is recorded.</p>}
      {byDay(sessions).map(([day, own]) => (
        <section key={day} class="day">
          <h2>
            {dayText(day, tick.peek())} <span class="quiet-text">{plural(own.length, "session")}</span>
          </h2>
          <ol>
            {own.map((session) => (
              <SessionRow key={session.session} session={session} units={units.get(session.session) ?? []} />
            ))}
          </ol>
        </section>
      ))}
      {list.nextPage !== undefined && (
        <p class="more">
          <button type="button" disabled={isReading} onClick={() => void more()}>
            {isReading ? "Reading …" : "Show older ones"}
          </button>
        </p>
      )}
    </div>
  );
}

type SessionRowProps = { readonly session: HistoryItem; readonly units: readonly HistoryItem[] };

function SessionRow({ session, units }: SessionRowProps) {
  const { startedAt, durationMs, labels, source, endPosition } = session;
  const branch = labels.branch ?? "";
  const loops = units.toReversed();
  const failed = units.filter(({ outcome, cause }) => outcome === "failed" || cause !== null).length;
  return (
    <li>
      <Sign of={signOf(session)} />
      <span class="name">
        <a href={itemPath(session)}>{startedAt === null ? "unknown time" : clockText(Date.parse(startedAt))}</a>{" "}
        <span class="quiet-text">
          {endPosition === null ? "running" : durationMs === null ? "" : durationText(durationMs)}
        </span>
      </span>
      <span class="what">
        {itemName(session) !== "session" && <code>{plainText(itemName(session))}</code>}{" "}
        {session.cause !== null && <span class="bad">{plainText(session.cause.text || session.cause.reason)}</span>}
      </span>
      <span class="marks">
        <span>{source.split("/").at(-1)}</span>
        {branch !== "" && <span>{branch}</span>}
      </span>
      <span class="took">
        {units.length === 0 ? "" : plural(units.length, units[0]?.kind ?? "")}
        {failed > 0 && <span class="bad">, {failed} failed</span>}
      </span>
      {loops.length > 0 && (
        <span class="strip">
          {loops.map((unit) => (
            <a
              key={unit.startPosition}
              href={itemPath(unit)}
              title={`${itemName(unit)}${unit.cause === null ? "" : `: ${unit.cause.text || unit.cause.reason}`}`}
            >
              <Sign of={signOf(unit)} label={`${itemName(unit)}`} />
            </a>
          ))}
        </span>
      )}
    </li>
  );
}

/** A session's end says nothing where its process gave no exit code. */
function signOf({ outcome, endPosition, cause, kind }: HistoryItem): DisplayedOutcome {
  if (endPosition === null) return "running";
  if (cause !== null || outcome === "failed") return "failed";
  return kind === "session" && outcome === "unknown" ? "canceled" : (outcome ?? "unknown");
}
