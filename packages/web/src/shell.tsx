import { computed } from "@preact/signals";
import { ageText, clockText } from "@tapedeck/client/lanes/format";
import { type Group, groupOf } from "@tapedeck/client/lanes/now";
import { useEffect } from "preact/hooks";
import { useNow } from "./data/follow-now.ts";
import { now, nowError, search } from "./data/shown.ts";
import { followTab } from "./data/tab.ts";
import { about, lostSince, mustSignIn, signOut, tick } from "./data/tapedeck.ts";
import { Keys, useKeys } from "./parts/keys.tsx";
import { Logo } from "./parts/logo.tsx";
import { ThemeButton } from "./parts/theme-button.tsx";
import { navigate, route } from "./router.ts";
import { CompareView } from "./views/compare.tsx";
import { HealthView } from "./views/health.tsx";
import { HistoryView } from "./views/history/history.tsx";
import { SourceDaysView } from "./views/history/source-days.tsx";
import { LoopView } from "./views/loop.tsx";
import { MissingView } from "./views/missing.tsx";
import { NowView } from "./views/now.tsx";
import { SessionView } from "./views/session.tsx";
import { SignInView } from "./views/sign-in.tsx";
import { TrendsView } from "./views/trends/later.tsx";

export function Shell() {
  useKeys();
  useNow();
  useEffect(() => followTab(failing), []);
  return (
    <>
      <LostLine />
      <Header />
      <main class={lostSince.value === undefined ? "" : "stale"}>{mustSignIn.value ? <SignInView /> : <View />}</main>
      <Keys keys={keys} />
    </>
  );
}

function View() {
  const current = route.value;
  switch (current.view) {
    case "now":
      return <NowView source={current.source} filter={current.filter} />;
    case "session":
      return <SessionView key={current.session} session={current.session} chosen={current} />;
    case "loop":
      return <LoopView key={JSON.stringify(current.loop)} name={current.loop} output={current.output} />;
    case "compare":
      return <CompareView left={current.left} right={current.right} />;
    case "trends":
      return <TrendsView query={current.query} />;
    case "history":
      return <HistoryView query={current.query} />;
    case "source":
      return <SourceDaysView key={current.source} source={current.source} />;
    case "health":
      return <HealthView />;
    default:
      return <MissingView path={current.path} />;
  }
}

function LostLine() {
  const since = lostSince.value;
  if (since === undefined) return null;
  return (
    <p class="lost-line" role="status">
      Connection lost at {clockText(since)} ({ageText(tick.value - since)}). This is how it was then; it is live again
      as soon as Tapedeck answers.
    </p>
  );
}

function Header() {
  const view = route.value.view;
  const current = (name: string) => (view === name ? "page" : undefined);
  return (
    <header class="top">
      <a class="brand" href="/" aria-label="Tapedeck">
        <Logo /> <span>Tapedeck</span>
      </a>
      <Workspace />
      <nav aria-label="Views">
        <a href="/" aria-current={current("now")}>
          Now
        </a>
        <a href="/loops" aria-current={current("history")}>
          Loops
        </a>
        <a href="/compare" aria-current={current("compare")}>
          Compare
        </a>
        <a href="/trends" aria-current={current("trends")}>
          Trends
        </a>
        <a href="/health" aria-current={current("health")}>
          Health
        </a>
      </nav>
      {/* These have a search of their own. */}
      {view !== "session" && view !== "history" && !mustSignIn.value && <Search isHere={view === "now"} />}
      <Counts />
      <ThemeButton />
      <Visitor />
    </header>
  );
}

/** Where a token leads; without tokens there is one workspace. */
function Workspace() {
  const token = about.value?.token;
  return token === undefined ? null : (
    <span class="workspace" title="workspace">
      {token.workspace}
    </span>
  );
}

/** Filters the rows of Now. `isHere`: they are shown; else Enter leads there. */
function Search({ isHere }: { readonly isHere: boolean }) {
  return (
    <input
      id="search"
      class={isHere ? "" : "elsewhere"}
      type="search"
      placeholder="source, artifact, error …   /"
      aria-label="Filter by source, artifact or error"
      value={search.value}
      onInput={(event) => {
        search.value = event.currentTarget.value;
      }}
      onKeyDown={({ key }) => {
        if (key === "Enter" && !isHere) navigate("/");
      }}
    />
  );
}

/** A source whose process has ended stops failing without an event, after a time. */
const countIn = (group: Group) =>
  computed(() => [...(now.value?.values() ?? [])].filter((row) => groupOf(row, tick.value) === group).length);
const failing = countIn("failing");
const lost = countIn("lost");

function Counts() {
  if (now.value === undefined || mustSignIn.value) return <span class="counts" />;
  const rows = [...now.value.values()];
  const recording = rows.filter((row) => row.status === "recording").length;
  return (
    <a class="counts" href="/" title={nowError.value === undefined ? "" : `Not live any more. ${nowError.value}`}>
      {failing.value > 0 && <b class="bad">{failing} failing</b>}
      <span>{recording} recording</span>
      {lost.value > 0 && <span class="lost">{lost} lost</span>}
    </a>
  );
}

function Visitor() {
  const token = about.value?.token;
  if (token === undefined) return null;
  return (
    <span class="visitor">
      <span title={`${token.workspace}: ${token.roles.join(", ")}`}>{token.name}</span>{" "}
      <button type="button" class="quiet" onClick={() => void signOut()}>
        Sign out
      </button>
    </span>
  );
}

const keys: readonly (readonly [string, string])[] = [
  ["/", "search"],
  ["j k", "next and previous row"],
  ["Enter", "open the row"],
  ["Escape", "close what is beside"],
  ["[ ]", "previous and next loop"],
  ["← →", "previous and next event, on the slider"],
  ["Space", "play and pause a session"],
  ["← → Enter", "on a chart: choose a time (with Shift a range), list its loops"],
  ["?", "this list"],
];
