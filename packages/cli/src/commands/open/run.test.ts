import { expect, it } from "vitest";
import { browserProgram, pageAddress } from "./run.ts";

it("leads to the source on the page, whatever its name holds", () => {
  expect(pageAddress("http://127.0.0.1:7052", undefined)).toBe("http://127.0.0.1:7052/");
  expect(pageAddress("https://t.example:7052", "alice/shop")).toBe("https://t.example:7052/?source=alice/shop");
  expect(pageAddress("https://t.example:7052", "a&b/c d")).toBe("https://t.example:7052/?source=a%26b/c%20d");
});

it("opens a browser where somebody sees it", () => {
  expect(browserProgram("linux", {})).toBeUndefined();
  expect(browserProgram("linux", { DISPLAY: ":0" })).toEqual(["xdg-open"]);
  expect(browserProgram("linux", { BROWSER: "firefox" })).toEqual(["firefox"]);
  expect(browserProgram("darwin", {})).toEqual(["open"]);
  expect(browserProgram("win32", {})?.[0]).toBe("cmd");
});
