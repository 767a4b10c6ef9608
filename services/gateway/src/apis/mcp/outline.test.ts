import { expect, it } from "vitest";
import { outline, valueAt } from "./outline.ts";

const state = {
  v1: { builds: Object.fromEntries(Array.from({ length: 99 }, (_, at) => [`a${at}`, { status: "Complete" }])) },
  v2: null,
};

it("shows a value that fits as it is", () => {
  expect(outline(state, 10_000)).toEqual({ json: JSON.stringify(state), isWhole: true });
});

it("shows the size of what lies too deep to fit, and never more than was asked for", () => {
  for (const maxBytes of [1_500, 300, 100, 60]) {
    const { json, isWhole } = outline(state, maxBytes);
    expect([isWhole, json.length <= maxBytes]).toEqual([false, true]);
  }
  expect(outline(state, 200).json).toBe('{"v1":{"builds":"{… 99: a0, a1, a2, a3, a4, a5, a6, a7}"},"v2":null}');
});

it("finds a part whose name has dots", () => {
  const artifacts = { "gcr.io/shop/web": { status: "Complete" }, "gcr.io/shop/web.v2": "Failed", gcr: { io: "other" } };
  expect(valueAt({ v1: { artifacts } }, "v1.artifacts.gcr.io/shop/web")).toEqual({ status: "Complete" });
  expect(valueAt({ v1: { artifacts } }, "v1.artifacts.gcr.io/shop/web.status")).toBe("Complete");
  expect(valueAt({ v1: { artifacts } }, "v1.artifacts.gcr.io/shop/web.v2")).toBe("Failed");
  expect(valueAt({ v1: { artifacts } }, "v1.artifacts.gcr.io")).toBe("other");
});

it("finds the part at a path, and nothing that objects have by themselves", () => {
  expect(valueAt(state, "v1.builds.a7.status")).toBe("Complete");
  expect(valueAt({ list: ["x"] }, "list.0")).toBe("x");
  for (const path of ["v1.none", "constructor", "__proto__"]) expect(valueAt(state, path)).toBeUndefined();
});
