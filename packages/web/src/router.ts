import { signal } from "@preact/signals";
import { type Route, routeOf } from "./model/route.ts";

export const route = signal<Route>(routeOf(location));

/** Shows what a path of this page names. `replace`: without an entry in the history, as for a slider that moves. */
export function navigate(path: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  if (replace) history.replaceState(undefined, "", path);
  else history.pushState(undefined, "", path);
  const before = route.value;
  route.value = routeOf(location);
  if (!replace && before.view !== route.value.view) window.scrollTo(0, 0);
}

/** Links to views do not load the page again. */
export function followLinks(): void {
  addEventListener("popstate", () => {
    route.value = routeOf(location);
  });
  document.addEventListener("click", (click) => {
    const link = click.target instanceof Element ? click.target.closest("a") : undefined;
    if (!link || click.defaultPrevented || click.button !== 0 || click.metaKey || click.ctrlKey || click.shiftKey)
      return;
    const { pathname, origin, search } = new URL(link.href);
    if (origin !== location.origin || link.target !== "" || pathname.startsWith("/api/")) return;
    click.preventDefault();
    navigate(pathname + search);
  });
}
