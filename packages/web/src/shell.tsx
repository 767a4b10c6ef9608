import { effect, signal } from "@preact/signals";
import { ageText, clockText } from "@tapedeck/client/lanes/format";
import { groupOf } from "@tapedeck/client/lanes/now";
import { useEffect, useRef } from "preact/hooks";
import { now, search } from "./data/shown.ts";
import { about, lostSince, mustSignIn, signOut, tick } from "./data/tapedeck.ts";
import { route } from "./router.ts";
import { CompareView } from "./views/compare.tsx";
import { HealthView } from "./views/health.tsx";
import { LoopView } from "./views/loop.tsx";
import { NowView } from "./views/now.tsx";
import { SessionView } from "./views/session.tsx";
import { SignInView } from "./views/sign-in.tsx";
import { TrendsView } from "./views/trends/later.tsx";

const themes = ["auto", "light", "dark"] as const;
type Theme = (typeof themes)[number];
const storedTheme = localStorage.getItem("theme");
const theme = signal<Theme>(themes.find((name) => name === storedTheme) ?? "auto");
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem("theme", theme.value);
});

const showsKeys = signal(false);

export function Shell() {
  useKeys();
  return (
    <>
      <LostLine />
      <Header />
      <main class={lostSince.value === undefined ? "" : "stale"}>{mustSignIn.value ? <SignInView /> : <View />}</main>
      <Keys />
    </>
  );
}

function View() {
  const shown = route.value;
  switch (shown.view) {
    case "now":
      return <NowView source={shown.source} />;
    case "session":
      return <SessionView key={shown.session} session={shown.session} at={shown.at} />;
    case "loop":
      return <LoopView key={JSON.stringify(shown.loop)} name={shown.loop} />;
    case "compare":
      return <CompareView left={shown.left} right={shown.right} />;
    case "trends":
      return <TrendsView query={shown.query} />;
    case "health":
      return <HealthView />;
    default:
      return (
        <div class="empty">
          <h1>There is nothing at {shown.path}</h1>
          <p>
            <a href="/">Back to what happens now</a>
          </p>
        </div>
      );
  }
}

function LostLine() {
  const since = lostSince.value;
  if (since === undefined) return null;
  return (
    <p class="lost-line" role="status">
      Connection lost at {clockText(since)} ({ageText(tick.value - since)}). What is shown is of then; it goes on by
      itself.
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
      <nav aria-label="Views">
        <a href="/" aria-current={current("now")}>
          Now
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
      {view === "now" && !mustSignIn.value && <Search />}
      <Counts />
      <button
        type="button"
        class="quiet theme"
        title={`Colours: ${theme.value}`}
        aria-label={`Colours: ${theme.value}. Change`}
        onClick={() => {
          theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "auto";
        }}
      >
        <span aria-hidden="true">{{ auto: "◐", light: "○", dark: "●" }[theme.value]}</span>
      </button>
      <Visitor />
    </header>
  );
}

function Logo() {
  return (
    <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
      <rect x="1.5" y="6.5" width="29" height="19" rx="4" fill="none" stroke="currentColor" stroke-width="2" />
      <circle cx="11" cy="16" r="4" fill="none" stroke="currentColor" stroke-width="2" />
      <circle cx="21" cy="16" r="4" fill="none" stroke="currentColor" stroke-width="2" />
      <path d="M11 20h10" stroke="currentColor" stroke-width="2" />
    </svg>
  );
}

function Search() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <input
      ref={input}
      id="search"
      type="search"
      placeholder="source, artifact, error …   /"
      aria-label="Filter by source, artifact or error"
      value={search.value}
      onInput={(event) => {
        search.value = event.currentTarget.value;
      }}
    />
  );
}

function Counts() {
  if (now.value === undefined || mustSignIn.value) return <span class="counts" />;
  const rows = [...now.value.values()];
  const failing = rows.filter((row) => groupOf(row) === "failing").length;
  const lost = rows.filter((row) => groupOf(row) === "lost").length;
  const recording = rows.filter((row) => row.status === "recording").length;
  return (
    <span class="counts">
      {failing > 0 && <b class="bad">{failing} failing</b>}
      <span>{recording} recording</span>
      {lost > 0 && <span class="lost">{lost} lost</span>}
    </span>
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

function Keys() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(
    () =>
      effect(() => {
        if (showsKeys.value) dialog.current?.showModal();
        else dialog.current?.close();
      }),
    [],
  );
  return (
    <dialog
      ref={dialog}
      class="keys"
      aria-label="Keys"
      onClose={() => {
        showsKeys.value = false;
      }}
    >
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </dialog>
  );
}

function useKeys(): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
      if (isTyping || event.metaKey || event.ctrlKey || event.altKey) return;
      if (event.key === "?") showsKeys.value = !showsKeys.value;
      if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLInputElement>("#search")?.focus();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
