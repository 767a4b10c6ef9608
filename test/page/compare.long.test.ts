import { describe, expect, it } from "vitest";
import { browserProgram, faultsOf, openPage, screenshot } from "./browser.ts";
import { compared } from "./compared.ts";
import { darkPhone, designs, lightDesktop } from "./page-designs.ts";

describe.skipIf(browserProgram === undefined)("on the page", () => {
  const on = compared();

  it.each(designs(lightDesktop, darkPhone))(
    "has no serious fault of accessibility in %s at %d px",
    async (colorScheme, width) => {
      const options = { colorScheme, viewport: { width, height: 900 } };
      const paths = {
        compare: "?left=bob/shop&right=olga/shop",
        "compare-empty": "",
        "compare-wrong": "?left=nobody/shop",
      };
      for (const [name, query] of Object.entries(paths)) {
        await using opened = await openPage(on.browser, `${on.base}/compare${query}`, options);
        const { page, errors } = opened;
        const there =
          { compare: ".difference-list", "compare-wrong": ".notice", "compare-empty": ".empty" }[name] ?? "";
        await page.locator(there).waitFor();
        expect([name, await faultsOf(page)]).toEqual([name, []]);
        expect([name, await page.evaluate("document.documentElement.scrollWidth - innerWidth"), errors]).toEqual([
          name,
          0,
          [],
        ]);
        await screenshot(page, `${name}-${colorScheme}-${width}`);
      }
    },
  );
});
