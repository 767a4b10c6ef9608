import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { skaffoldText } from "./skaffold.ts";

it("has one line for each part of the state that says something", () => {
  const text = skaffoldText({
    v1: {
      buildState: { artifacts: { web: "Complete", api: "In Progress" }, autoTrigger: true },
      testState: null,
      deployState: { status: "Complete" },
      statusCheckState: { status: "Succeeded", resources: { "deployment/web": "Succeeded" } },
      forwardedPorts: { 4503: { localPort: 4503, containerName: "web" }, 4504: { localPort: 4504, containerName: "" } },
      debuggingContainers: [{ podName: "web-1", containerName: "web" }],
    },
  });
  expect(stripVTControlCharacters(text)).toBe(
    [
      "  build    api In Progress, web Complete",
      "  deploy   Complete",
      "  check    Succeeded  deployment/web Succeeded",
      "  ports    4503 → web, 4504",
      "  debugged web-1/web",
      "  auto     build on, sync off, deploy off",
    ].join("\n"),
  );
});

it("is empty for a Skaffold that has not begun", () => {
  expect(skaffoldText({ v1: {} })).toBe("");
});
