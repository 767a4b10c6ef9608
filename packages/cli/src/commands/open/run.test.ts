import { expect, it } from "vitest";
import { browserProgram, pathOf } from "./run.ts";

it("leads to what is named, whatever the name holds", () => {
  expect(pathOf(undefined)).toBe("/");
  expect(pathOf({ type: "source", name: undefined })).toBe("/");
  expect(pathOf({ type: "source", name: "default/alice/shop/skaffold" })).toBe("/?source=alice/shop");
  expect(pathOf({ type: "source", name: "default/a&b/c d/vagrant" })).toBe("/?source=a%26b/c%20d/vagrant");
  expect(pathOf({ type: "loop", name: "01M7XB1CJJ74KGYJT57DM4N80H.1.54" })).toBe(
    "/loops/01M7XB1CJJ74KGYJT57DM4N80H.1.54",
  );
  expect(pathOf({ type: "session", name: "01M7XB1CJJ74KGYJT57DM4N80H@383600-t3k9x2" })).toBe(
    "/sessions/01M7XB1CJJ74KGYJT57DM4N80H?at=383600-t3k9x2",
  );
});

it("opens a browser where somebody sees it", () => {
  expect(browserProgram("linux", {})).toBeUndefined();
  expect(browserProgram("linux", { DISPLAY: ":0" })).toEqual(["xdg-open"]);
  expect(browserProgram("linux", { BROWSER: "firefox" })).toEqual(["firefox"]);
  expect(browserProgram("darwin", {})).toEqual(["open"]);
  expect(browserProgram("win32", {})?.[0]).toBe("cmd");
});
