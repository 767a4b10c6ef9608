import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { dashboardFiles } from "./files.ts";

const here = (...path: readonly string[]) => join(import.meta.dirname, ...path);

it("the checked-in dashboards are those that Grafana's SDK builds (`npm run dashboards` writes them)", () => {
  const files = dashboardFiles();
  expect(readdirSync(here("json")).toSorted()).toEqual(Object.keys(files).toSorted());
  for (const [name, text] of Object.entries(files)) expect(readFileSync(here("json", name), "utf8")).toBe(text);
});

type Panel = {
  readonly id: number;
  readonly title: string;
  readonly gridPos: Readonly<Record<"x" | "y" | "w" | "h", number>>;
  readonly targets: readonly {
    readonly refId: string;
    readonly datasource: { readonly uid: string; readonly type: string };
  }[];
};

it("every query goes to a data source that is provisioned, and no panel covers another", () => {
  const { datasources } = parse(readFileSync(here("provisioning/datasources/tapedeck.yaml"), "utf8"));
  const known = new Set(datasources.map(({ uid, type }: Readonly<Record<string, string>>) => `${type} ${uid}`));
  for (const text of Object.values(dashboardFiles())) {
    const { panels, uid } = JSON.parse(text) as { readonly panels: readonly Panel[]; readonly uid: string };
    expect(panels.length).toBeGreaterThanOrEqual(6);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const { title, targets } of panels) {
      expect(targets, title).not.toEqual([]);
      for (const { datasource } of targets) expect(known).toContain(`${datasource.type} ${datasource.uid}`);
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
    }
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size, uid).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBeLessThanOrEqual(24);
  }
});
