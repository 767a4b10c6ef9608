import { signal } from "@preact/signals";
import { type Route, routeOf } from "./model/route.ts";

/** A page in a file has its paths behind "#", and only some of the views. */
type InFile = { readonly home: string; readonly has: (route: Route) => boolean };

let inFile: InFile | undefined;

export const route = signal<Route>(routeOf(location));

function routeHere(): Route {
  return inFile === undefined ? routeOf(location) : routeIn(location.hash.slice(1) || inFile.home);
}

function routeIn(path: string): Route {
  return routeOf(new URL(path, "http://page"));
}

/** The address of a link to a path of this page. Undefined: this page does not have it. */
export function to(path: string): string | undefined {
  if (inFile === undefined) return path;
  return inFile.has(routeIn(path)) ? `#${path}` : undefined;
}

/** Shows what a path of this page names. `replace`: without an entry in the history, as for a slider that moves. */
export function navigate(path: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const address = to(path);
  if (address === undefined) return;
  if (replace) history.replaceState(undefined, "", address);
  else history.pushState(undefined, "", address);
  show({ keepsPlace: replace });
}

function show({ keepsPlace = false } = {}): void {
  const before = route.value;
  route.value = routeHere();
  if (!keepsPlace && before.view !== route.value.view) window.scrollTo(0, 0);
}

/** Links to views do not load the page again. */
export function followLinks(): void {
  addEventListener("popstate", () => {
    route.value = routeHere();
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

/** A browser follows links behind "#" by itself. */
export function followLinksInFile(pages: InFile): void {
  inFile = pages;
  addEventListener("hashchange", () => show());
  route.value = routeHere();
}
