import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { tabIcon, tabTitle } from "../model/tab.ts";

const view = signal("");

/** Names the view in the tab's title. */
export function useTitle(name: string): void {
  useEffect(() => {
    view.value = name;
  }, [name]);
}

/** Keeps the tab's title and icon as they are, with the number of sources that fail. Call it once. */
export function followTab(failing: ReadonlySignal<number>): () => void {
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  const own = icon?.href ?? "";
  return effect(() => {
    document.title = tabTitle(view.value, failing.value);
    if (icon !== null) icon.href = tabIcon(failing.value) ?? own;
  });
}
