import { plural } from "@tapedeck/client/lanes/format";
import { useEffect, useState } from "preact/hooks";
import { type HistoryList, useHistory } from "../../data/read-history-page.ts";
import { useTitle } from "../../data/tab.ts";
import { about } from "../../data/tapedeck.ts";
import { type HistoryChoice, historyChoiceOf, historyPath, searchOptionsOf } from "../../model/history.ts";
import { nothingRecorded } from "../../model/own.ts";
import { ErrorNotice } from "../../parts/small.tsx";
import { navigate } from "../../router.ts";
import "../../look/history.css";
import { HistoryFilters } from "./filters.tsx";
import { HistoryRows } from "./rows.tsx";

const pageSize = 100;
const typedMs = 300;

/** All loops, commands and sessions of everybody, the newest first, and a search in them. */
export function HistoryView({ query }: { readonly query: string }) {
  const choice = historyChoiceOf(query);
  const { list, error, isReading, more } = useHistory(searchOptionsOf(choice), pageSize);
  useTitle(choice.text === "" ? "Loops" : `“${choice.text}”`);
  return (
    <div class="history">
      <h1 class="hidden">Loops, commands and sessions</h1>
      <TextField
        key={choice.text}
        text={choice.text}
        search={(text) => navigate(historyPath({ ...choice, text }), { replace: true })}
      />
      <HistoryFilters choice={choice} />
      {error !== undefined && <ErrorNotice text={error} />}
      {error === undefined && list === undefined && <p class="quiet-text">Reading …</p>}
      {list !== undefined && (
        <>
          {choice.text !== "" && list.items.length > 0 && (
            <p class="found" role="status">
              {countText(list)}
            </p>
          )}
          {list.items.length === 0 ? <None choice={choice} /> : <HistoryRows items={list.items} choice={choice} />}
          {list.nextPage !== undefined && (
            <p class="more">
              <button type="button" disabled={isReading} onClick={() => void more()}>
                {isReading ? "Reading …" : "Show older ones"}
              </button>
            </p>
          )}
        </>
      )}
    </div>
  );
}

export function countText({ total = 0, totalIsMinimum }: HistoryList): string {
  const count = plural(total, "match", "matches");
  return totalIsMinimum ? `At least ${count}` : count;
}

/** Searches while one types, once nothing was typed for a moment. */
function TextField({ text, search }: { readonly text: string; readonly search: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  const isShort = typed.trim() !== "" && !/[\p{L}\p{N}]{3}/u.test(typed);
  useEffect(() => {
    if (typed.trim() === text || isShort) return;
    const timer = setTimeout(() => search(typed.trim()), typedMs);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <search class="text">
      <input
        id="search"
        type="search"
        aria-label="Search in causes, artifacts, labels and the output of failed steps"
        placeholder="no such file, Deploymint, main.go:12, branch=…   /"
        value={typed}
        onInput={({ currentTarget: { value } }) => setTyped(value)}
      />
      <span class="quiet-text">
        {isShort
          ? "three letters or digits in a row, at least"
          : "causes, artifacts, labels, the output of failed steps"}
      </span>
    </search>
  );
}

function None({ choice: { text, ...filters } }: { readonly choice: HistoryChoice }) {
  const isFiltered = historyPath(filters) !== historyPath({});
  if (text === "" && !isFiltered) {
    const { title, reason } = nothingRecorded(about.value?.token);
    return (
      <div class="empty">
        <p>{title}.</p>
        {reason !== undefined && <p>{reason}</p>}
        <p>
          <a href="/">How to begin</a>
        </p>
      </div>
    );
  }
  return (
    <div class="empty">
      <p>
        {text === ""
          ? "Nothing matches these filters."
          : `“${text}” was not found${isFiltered ? " with these filters" : ""}.`}
      </p>
      {isFiltered && (
        <p>
          <a href={historyPath({ text })}>Without filters</a>
        </p>
      )}
    </div>
  );
}
