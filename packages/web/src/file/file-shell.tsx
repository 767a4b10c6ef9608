import { signal } from "@preact/signals";
import { dateTimeText, plural } from "@tapedeck/client/lanes/format";
import { useEffect } from "preact/hooks";
import { followTab } from "../data/tab.ts";
import { serverNow } from "../data/tapedeck.ts";
import { sessionPath } from "../model/route.ts";
import { endOf } from "../model/session.ts";
import { Keys, useKeys } from "../parts/keys.tsx";
import { Logo } from "../parts/logo.tsx";
import { ThemeButton } from "../parts/theme-button.tsx";
import { route, to } from "../router.ts";
import { LoopView } from "../views/loop.tsx";
import { SessionView } from "../views/session.tsx";
import { maySetState, type SessionData } from "./data.ts";

const nothingFails = signal(0);

/** The page around a session that is in the same file. */
export function FileShell({ data }: { readonly data: SessionData }) {
  useKeys();
  useEffect(() => followTab(nothingFails), []);
  return (
    <>
      <header class="top">
        <span class="brand">
          <Logo /> <span>Tapedeck</span>
        </span>
        <span class="counts" title={`${data.exportedBy}, ${data.exportedAt}`}>
          written {dateTimeText(Date.parse(data.exportedAt), serverNow())}
        </span>
        <ThemeButton />
      </header>
      <main>
        <Limits data={data} />
        <View session={data.session.session} />
      </main>
      <Keys keys={keys} />
    </>
  );
}

function View({ session }: { readonly session: string }) {
  const current = route.value;
  if (current.view === "session" && current.session === session)
    return <SessionView session={session} chosen={current} />;
  if (current.view === "loop" && current.loop.session === session)
    return <LoopView key={JSON.stringify(current.loop)} name={current.loop} output={current.output} />;
  return (
    <div class="empty">
      <h1>This is not in the file</h1>
      <p>
        It has one session: <a href={to(sessionPath(session))}>show it</a>
      </p>
    </div>
  );
}

/** What of the session the file lacks. */
function Limits({
  data: { session, events, olderEvents, operations, olderOperations, statePoints },
}: {
  readonly data: SessionData;
}) {
  const changes = events.filter(maySetState).length;
  const isRunning = endOf(session) === undefined;
  const remarks = [
    olderEvents > 0 &&
      `It has the newest ${events.length.toLocaleString("en")} events; ${plural(olderEvents, "older one")} left out.`,
    olderOperations > 0 &&
      `It has the newest ${operations.length.toLocaleString("en")} operations; ${plural(olderOperations, "older one")} left out.`,
    statePoints.length < changes &&
      `It has the state of ${statePoints.length.toLocaleString("en")} of ${changes.toLocaleString("en")} moments; in between, that of the one before is shown.`,
    isRunning && "The session was still running when this file was written.",
  ].filter((sentence) => sentence !== false);
  return remarks.length === 0 ? null : <p class="notice">{remarks.join(" ")}</p>;
}

const keys: readonly (readonly [string, string])[] = [
  ["/", "filter events"],
  ["[ ]", "previous and next loop"],
  ["← →", "previous and next event, on the slider"],
  ["Space", "play and pause"],
  ["?", "this list"],
];
