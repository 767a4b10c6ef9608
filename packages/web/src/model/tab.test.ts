import { expect, it } from "vitest";
import { viewMeant } from "./missing.ts";
import { routeOf } from "./route.ts";
import { tabIcon, tabTitle } from "./tab.ts";

it("a tab's title and icon count what fails, and only then", () => {
  expect([tabTitle("Now", 0), tabTitle("Now", 3), tabTitle("", 0)]).toEqual([
    "Now · Tapedeck",
    "(3) Now · Tapedeck",
    "Tapedeck",
  ]);
  expect(tabIcon(0)).toBeUndefined();
  expect(decodeURIComponent(tabIcon(3) ?? "")).toContain(">3</text>");
  expect(decodeURIComponent(tabIcon(12) ?? "")).toContain(">9+</text>");
});

it.each([
  ["/loop", "/loops"],
  ["/session", "/loops"],
  ["/Sessions/", "/loops"],
  ["/now", "/"],
  ["/trend", "/trends"],
  ["/stats/builds", "/trends"],
  ["/diff", "/compare"],
  ["/swagger", "/api/docs/"],
  ["/xyzzy", undefined],
])("a visitor of %s may have meant %s", (path, meant) => {
  expect(viewMeant(path)?.path).toBe(meant);
});

it.each(["/loops/", "/trends/", "/compare/", "/health/"])("%s is the view without the slash at its end", (pathname) => {
  const search = "";
  expect(routeOf({ pathname, search })).toEqual(routeOf({ pathname: pathname.slice(0, -1), search }));
});

it("a part of a path that can't be decoded is taken as it is", () => {
  expect(routeOf({ pathname: "/sources/100%/shop", search: "" })).toMatchObject({ source: "100%/shop" });
});
