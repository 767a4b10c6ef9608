import { effect, signal } from "@preact/signals";
import { failedLoop } from "@tapedeck/client/lanes/headline";
import { type Group, groups, type Lane, type Now, type Placement, placed, settleMs } from "@tapedeck/client/lanes/now";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { now, nowError, search } from "../data/shown.ts";
import { useTitle } from "../data/tab.ts";
import { about, tick } from "../data/tapedeck.ts";
import { historyPath } from "../model/history.ts";
import { nothingRecorded } from "../model/own.ts";
import { isForView } from "../parts/keys.tsx";
import { glideFrom, topsOf } from "../parts/moves.ts";
import { CopyButton, ErrorNotice, Loading } from "../parts/small.tsx";
import { choose, navigate, pathWith } from "../router.ts";
import { NowRow } from "./now-row.tsx";
import { SourcePanel } from "./source-panel.tsx";

const places = signal<ReadonlyMap<string, Placement>>(new Map());
const held = signal<string | undefined>(undefined);

const titles: Readonly<Record<Group, string>> = { failing: "Failing", running: "Running", idle: "Idle", lost: "Lost" };

type NowViewProps = {
  readonly source: string | undefined;
  /** The text in the URL. */
  readonly filter: string | undefined;
};

export function NowView({ source, filter }: NowViewProps) {
  useTitle("Now");
  useFilter(filter);
  const list = useRef<HTMLDivElement>(null);
  usePlaces(list);
  useRowKeys(list, source !== undefined);

  if (nowError.value !== undefined && now.value === undefined) return <ErrorNotice text={nowError.value} />;
  if (now.value === undefined) return <Loading what="what happens now" />;
  if (now.value.size === 0) return <Nothing />;
  const chosen = source === undefined ? undefined : rowNamed(now.value, source);
  const searched = search.value.trim();
  const isNone = ![...now.value.values()].some((row) => matches(row, searched.toLowerCase()));
  return (
    <div class={`now ${chosen === undefined ? "" : "beside"}`}>
      <div class="groups" ref={list}>
        <h1 class="hidden">What happens now</h1>
        {nowError.value !== undefined && <p class="notice bad">Not live any more. {nowError.value}</p>}
        {source !== undefined && chosen === undefined && <p class="notice">There is no source {source} here.</p>}
        {groups.map((group) => (
          <GroupOfRows key={group} group={group} chosen={chosen?.source} />
        ))}
        {isNone && <NoMatch searched={searched} />}
      </div>
      {chosen !== undefined && <SourcePanel key={chosen.source} row={chosen} />}
    </div>
  );
}

/** A URL with a filter fills the search field, and the URL has what is in the field. */
function useFilter(filter: string | undefined): void {
  useLayoutEffect(() => {
    if (filter !== undefined) search.value = filter;
  }, [filter]);
  useEffect(() => search.subscribe((text) => choose({ filter: text })), [filter]);
}

/** Before what comes is drawn. Rows that wait to move do so without an event, too. */
function usePlaces(list: { readonly current: HTMLDivElement | null }): void {
  const before = useRef<ReadonlyMap<string, number>>(new Map());
  const placeAll = (rows: Now | undefined) =>
    place(rows, () => {
      before.current = topsOf(list.current);
    });
  useLayoutEffect(() => glideFrom(before.current, list.current), [places.value]);
  useLayoutEffect(() => {
    const stop = effect(() => placeAll(now.value));
    const timer = setInterval(() => placeAll(now.peek()), settleMs / 4);
    return () => {
      stop();
      clearInterval(timer);
      // A person who comes back later finds rows where they belong, and points at none.
      places.value = new Map();
      held.value = undefined;
    };
  }, []);
}

/** `moving` is called before anything moves. */
function place(rows: Now | undefined, moving: () => void): void {
  if (rows === undefined) return;
  const before = places.peek();
  const after = placed(before, rows, { now: tick.peek(), held: held.peek() });
  // Nothing is drawn when only the times of wishes have changed.
  if (!differs(before, after)) return;
  moving();
  places.value = after;
}

function differs(before: ReadonlyMap<string, Placement>, after: ReadonlyMap<string, Placement>): boolean {
  if (before.size !== after.size) return true;
  return [...after].some(([source, { group, target: searched }]) => {
    const old = before.get(source);
    return old?.group !== group || old.target !== searched;
  });
}

function rowNamed(rows: Now, name: string): Lane | undefined {
  return (
    rows.get(name) ?? [...rows.values()].find((row) => row.name === name || `${row.name}/${row.upstream}` === name)
  );
}

function GroupOfRows({ group, chosen }: { readonly group: Group; readonly chosen: string | undefined }) {
  const searched = search.value.trim().toLowerCase();
  const rows = [...(now.value?.values() ?? [])]
    .filter((row) => places.value.get(row.source)?.group === group && matches(row, searched))
    .toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.upstream < b.upstream ? -1 : 1));
  if (rows.length === 0) return null;
  return (
    <section class={`group in-${group}`} aria-label={titles[group]}>
      <h2>
        {titles[group]} <span class="count">{rows.length}</span>
      </h2>
      <ul>
        {rows.map((row) => (
          <li key={row.source} data-source={row.source}>
            <NowRow
              row={row}
              isChosen={row.source === chosen}
              hold={(isHeld) => {
                held.value = isHeld ? row.source : undefined;
              }}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}

function matches(row: Lane, searched: string): boolean {
  if (searched === "") return true;
  // What the row shows: its current loop, and the failure that is not repaired yet.
  const loops = [row.loops.at(-1), failedLoop(row)].filter((loop) => loop !== undefined);
  const texts = [
    row.name,
    row.upstream,
    ...Object.values(row.labels),
    ...loops
      .flatMap((loop) => [loop, ...loop.steps])
      .flatMap(({ subject, error, cause }) => [
        subject,
        error,
        ...(cause == null ? [] : [cause.text, cause.reason, cause.file ?? ""]),
      ]),
  ];
  return texts.some((text) => text.toLowerCase().includes(searched));
}

/** j and k move through the rows; Enter opens one, as it is a link. */
function useRowKeys(list: { readonly current: HTMLDivElement | null }, isBeside: boolean): void {
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!isForView(event)) return;
      if (event.key === "Escape" && isBeside) navigate(pathWith({ source: undefined }));
      if (event.key !== "j" && event.key !== "k") return;
      const links = [...(list.current?.querySelectorAll<HTMLAnchorElement>("a.source") ?? [])];
      const at = links.indexOf(document.activeElement as HTMLAnchorElement);
      links[Math.max(0, Math.min(links.length - 1, at + (event.key === "j" ? 1 : -1)))]?.focus();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [isBeside]);
}

function NoMatch({ searched }: { readonly searched: string }) {
  const showAll = () => {
    search.value = "";
  };
  return (
    <div class="empty">
      <p>No source, artifact or error matches “{searched}”.</p>
      <p>
        <a href={historyPath({ text: searched })}>Search in all loops</a>{" "}
        <button type="button" class="quiet" onClick={showAll}>
          Show all sources
        </button>
      </p>
    </div>
  );
}

const firstCommand = "tapedeck run -- skaffold dev";

function Nothing() {
  const token = about.value?.token;
  const { title, reason } = nothingRecorded(token);
  const isNobody = token?.seesOnlyOwn === true && token.developer === undefined;
  return (
    <div class="empty first">
      <h1>{title}</h1>
      {reason !== undefined && (
        <p>
          {reason} <a href="/trends">Trends</a> has sums of the team.
        </p>
      )}
      {isNobody ? <TokenOfDeveloper /> : <FirstCommand />}
    </div>
  );
}

/** A token that names the visitor, who else sees nothing, whatever is recorded. */
function TokenOfDeveloper() {
  return (
    <p class="quiet-text">
      An admin makes a token that names you: <code>tapedeck token create --developer &lt;you&gt;</code>
    </p>
  );
}

function FirstCommand() {
  return (
    <>
      <p>Put Tapedeck in front of your dev loop, in your project's folder:</p>
      <p class="command">
        <code>{firstCommand}</code> <CopyButton text={() => firstCommand}>Copy</CopyButton>
      </p>
      <p class="quiet-text">
        This page shows it as soon as it begins. Vagrant works the same: <code>tapedeck run -- vagrant-go up</code>
      </p>
    </>
  );
}
