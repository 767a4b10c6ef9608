import { signal } from "@preact/signals";
import { changedPath, type Route, routeOf } from "./model/route.ts";

/** A page in a file has its paths behind "#", and only some of the views. */
type InFile = { readonly home: string; readonly has: (route: Route) => boolean };

let inFile: InFile | undefined;

/** The path that is shown. The address bar follows a little later where it changes often, as under a slider. */
let currentPath = location.pathname + location.search;

export const route = signal<Route>(routeIn(currentPath));

function pathHere(): string {
  return inFile === undefined ? location.pathname + location.search : location.hash.slice(1) || inFile.home;
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
  if (replace) {
    currentPath = path;
    writeSoon();
  } else {
    writeNow();
    currentPath = path;
    history.pushState(undefined, "", address);
  }
  show({ keepsPlace: replace });
}

type Changes = Parameters<typeof changedPath>[1];

/** The path that is shown, with other parameters. */
export function pathWith(changes: Changes): string {
  return changedPath(currentPath, changes);
}

/** Changes parameters of the path that is shown: it always has all that a visitor chose. */
export function choose(changes: Changes): void {
  const changed = pathWith(changes);
  if (changed !== currentPath) navigate(changed, { replace: true });
}

/** Browsers ignore or refuse an address that changes more often than some 20 times a second. */
const writeMs = 100;
let writing: ReturnType<typeof setTimeout> | undefined;

function writeSoon(): void {
  writing ??= setTimeout(writeNow, writeMs);
}

function writeNow(): void {
  if (writing === undefined) return;
  clearTimeout(writing);
  writing = undefined;
  history.replaceState(undefined, "", to(currentPath));
}

/** The address of what is shown, to copy. */
export function addressHere(): string {
  writeNow();
  return location.href;
}

function show({ keepsPlace = false } = {}): void {
  const before = route.value;
  route.value = routeIn(currentPath);
  if (!keepsPlace && before.view !== route.value.view) window.scrollTo(0, 0);
}

/** The visitor has gone back or forth. */
function showHere(options?: Parameters<typeof show>[0]): void {
  clearTimeout(writing);
  writing = undefined;
  currentPath = pathHere();
  show(options);
}

/** Links to views do not load the page again. */
export function followLinks(): void {
  // The browser puts the page back to where it was.
  addEventListener("popstate", () => showHere({ keepsPlace: true }));
  document.addEventListener("click", (click) => {
    const link = click.target instanceof Element ? click.target.closest("a") : undefined;
    if (!link || click.defaultPrevented || click.button !== 0 || click.metaKey || click.ctrlKey || click.shiftKey)
      return;
    const { pathname, origin, search } = new URL(link.href);
    if (origin !== location.origin || link.target !== "" || /^\/(api|docs)\//.test(pathname)) return;
    click.preventDefault();
    navigate(pathname + search);
  });
}

/** A browser follows links behind "#" by itself. */
export function followLinksInFile(pages: InFile): void {
  inFile = pages;
  addEventListener("hashchange", () => showHere());
  currentPath = pathHere();
  route.value = routeIn(currentPath);
}
